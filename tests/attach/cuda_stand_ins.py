"""Stand-ins for the CUDA libraries that PyTorch's wheel is linked with, for machines without a GPU.

The wheel's own libraries name 2 GB of CUDA libraries that a run on the CPU loads and never calls. Each is replaced by a
shared library with the same symbols and versions, all of which return 1, an error in every one of these interfaces. The
CUDA runtime itself is the real one: torch asks it whether there is a GPU.
"""
import collections
import pathlib
import subprocess
import sys

TORCH_LIBRARIES = ("libtorch_cuda.so", "libtorch_nvshmem.so", "libtorch_python.so", "libc10_cuda.so", "libtorch_cpu.so")
# First match wins: which library a symbol without a version of its own is from.
PREFIXES = (("cusparseLt", "libcusparseLt.so.0"), ("cusparse", "libcusparse.so.12"), ("cufft", "libcufft.so.12"),
            ("cuFile", "libcufile.so.0"), ("nccl", "libnccl.so.2"), ("pnccl", "libnccl.so.2"),
            ("cublasLt", "libcublasLt.so.13"), ("cublas", "libcublas.so.13"), ("cudnn", "libcudnn.so.9"),
            ("nvrtc", "libnvrtc.so.13"), ("nvshmem", "libnvshmem_host.so.3"), ("cupti", "libcupti.so.13"))


def undefined(library):
    """(name, version or "", is data) of every symbol that `library` takes from elsewhere."""
    text = subprocess.run(["readelf", "--dyn-syms", "-W", library], capture_output=True, text=True, check=True).stdout
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[6] == "UND":
            name, _, version = fields[7].partition("@")
            yield name, version.strip("@"), fields[3] == "OBJECT"


def wanted(folder):
    symbols = collections.defaultdict(dict)
    for library in TORCH_LIBRARIES:
        for name, version, data in undefined(folder / library):
            owner = next((so for prefix, so in PREFIXES if name.startswith(prefix)), None)
            if owner:
                symbols[owner][name] = (version, data)
    return symbols


def source(symbols):
    lines = []
    for name, (_, data) in sorted(symbols.items()):
        if data:
            lines += [".bss", f".globl {name}", f".type {name},@object", f".size {name},65536", f"{name}: .zero 65536"]
        else:
            lines += [".text", f".globl {name}", f".type {name},@function", f"{name}: mov $1,%eax", "ret"]
    return "\n".join([*lines, '.section .note.GNU-stack,"",@progbits', ""])


def version_script(symbols):
    by_version = collections.defaultdict(list)
    for name, (version, _) in sorted(symbols.items()):
        if version:
            by_version[version].append(name)
    return "".join(f"{version} {{ {'; '.join(names)}; }};\n" for version, names in by_version.items())


def make(folder):
    folder = pathlib.Path(folder)
    for library, symbols in wanted(folder).items():
        assembly, script = folder / "stand_in.s", folder / "stand_in.map"
        assembly.write_text(source(symbols))
        script.write_text(version_script(symbols))
        versions = [f"-Wl,--version-script={script}"] if script.read_text() else []
        subprocess.run(["cc", "-shared", "-nostdlib", f"-Wl,-soname,{library}", *versions, "-o", folder / library, assembly],
                       check=True)
        assembly.unlink()
        script.unlink()


if __name__ == "__main__":
    make(sys.argv[1])
