"""The wheel that others install: in a fresh environment, without the repository, it attaches, sums up and opens recordings."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

import runs

# What a wheel may take from the system (docs/attach has the list): the C and C++ libraries, zlib, expat, the loader, OpenGL and X11.
SYSTEM = re.compile(r"^(linux-vdso|ld-linux-x86-64|lib(c|m|dl|rt|pthread|resolv|util|z|expat|stdc\+\+|gcc_s|GL|EGL|OpenGL|GLX|GLdispatch|X11|xcb|Xau|Xdmcp"
                    r"|bsd|md))\.so")


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="shardscope-wheel-test-")
        folder = pathlib.Path(cls.scratch.name)
        done = subprocess.run([sys.executable, runs.ROOT / "python" / "make_wheel", "--python", runs.PYTHON, "--no-isolation",
                               "--lib", runs.BUILD / "lib", folder / "wheels"],
                              env={**os.environ, "PATH": f"{runs.ENVIRONMENT / 'bin'}:{os.environ['PATH']}"}, capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        cls.wheel = pathlib.Path(done.stdout.strip())
        cls.venv = folder / "venv"
        subprocess.run([runs.PYTHON, "-m", "venv", cls.venv], check=True)
        subprocess.run([cls.venv / "bin" / "python", "-m", "pip", "install", "-q", "--no-index", "--disable-pip-version-check", cls.wheel], check=True)
        cls.site = next((cls.venv / "lib").glob("python*/site-packages"))
        # PyTorch is 1.3 GB: the environment's own, seen from this one.
        cls.torch_site = next((runs.ENVIRONMENT / "lib").glob("python*/site-packages"))

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def run_in(self, *command, torch=False):
        """With nothing of the repository in the environment."""
        pth = self.site / "torch-of-the-tests.pth"
        if torch:
            pth.write_text(f"{self.torch_site}\n", encoding="utf-8")
        environment = {"PATH": f"{self.venv / 'bin'}:/usr/bin:/bin", "HOME": self.scratch.name, "OMP_NUM_THREADS": "1",
                       "GLOO_SOCKET_IFNAME": "lo", "TMPDIR": self.scratch.name}
        done = subprocess.run(list(map(str, command)), env=environment, cwd=self.scratch.name, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False, timeout=runs.DEADLINE_S)
        pth.unlink(missing_ok=True)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:])
        return done.stdout

    def test_attaches_sums_up_and_opens(self):
        script = pathlib.Path(self.scratch.name) / "fsdp2.py"
        shutil.copy(runs.ROOT / "samples" / "attach" / "fsdp2.py", script)
        recording = pathlib.Path(self.scratch.name) / "run.zscope"
        output = self.run_in("shardscope", "attach", "--record", recording, "--", self.venv / "bin" / "python", "-m", "torch.distributed.run",
                             "--nproc-per-node", "2", "--master-port", runs.free_port(), script, torch=True)
        self.assertIn("step 19: loss", output)
        summary = json.loads(self.run_in("shardscope", "summary", "--json", recording))
        self.assertEqual((summary["run"]["world"], summary["steps"], summary["dropped"]), (2, 20, 0))
        opened = self.run_in("python", "-c", f"import json, shardscope; print(json.dumps(shardscope.open({str(recording)!r}).summary()))")
        self.assertEqual(json.loads(opened), summary)
        picture = pathlib.Path(self.scratch.name) / "run.png"
        self.run_in("shardscope", "view", recording, "--screenshot", picture, "--size", "800x600")
        self.assertGreater(picture.stat().st_size, 10000)

    def test_brings_what_a_distribution_lacks(self):
        package = self.site / "shardscope"
        found = [package / "bin" / "shardscope", package / "bin" / "shardscope-gui", *package.glob("*.so*"), *self.site.glob("shardscope.libs/*")]
        self.assertGreater(len(found), 8)
        for file in found:
            listed = subprocess.run(["ldd", file], capture_output=True, text=True, check=True).stdout
            for line in listed.splitlines():
                name, _, rest = line.strip().partition(" => ")
                self.assertNotIn("not found", rest, f"{file}: {line}")
                if not SYSTEM.match(pathlib.PurePath(name.split()[0]).name):
                    self.assertIn(str(self.site), rest, f"{file}: {line.strip()}: from the system")

    def test_its_tag_says_for_whom(self):
        self.assertRegex(self.wheel.name, r"^shardscope-[\d.]+-(cp311-cp311|cp312-abi3)-manylinux_2_\d+_x86_64\.whl$")
        with zipfile.ZipFile(self.wheel) as files:
            names = files.namelist()
        self.assertFalse([name for name in names if name.endswith((".cpp", ".h"))])
        self.assertIn("shardscope/bin/shardscope", names)


class FromAPrefix(unittest.TestCase):
    """Where Shardscope is installed pip builds the package from the installed source, and the package uses the programs from there."""

    def test_is_built_and_finds_the_programs(self):
        with tempfile.TemporaryDirectory(prefix="shardscope-prefix-") as scratch:
            prefix, target = pathlib.Path(scratch) / "prefix", pathlib.Path(scratch) / "target"
            subprocess.run(["cmake", "--install", runs.BUILD, "--component", "cli", "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
            path = f"{runs.ENVIRONMENT / 'bin'}:{os.environ['PATH']}"
            subprocess.run([runs.PYTHON, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--disable-pip-version-check",
                            "--target", target, prefix / "share" / "shardscope" / "python"], env={**os.environ, "PATH": path}, check=True)
            self.assertFalse((target / "shardscope" / "bin").exists())
            environment = {"PATH": "/usr/bin:/bin", "HOME": scratch, "PYTHONPATH": str(target), "LD_LIBRARY_PATH": str(prefix / "lib")}
            said = subprocess.run([runs.PYTHON, target / "bin" / "shardscope", "--version"], env=environment, cwd=scratch, capture_output=True,
                                  text=True, check=True).stdout
            self.assertTrue(said.startswith("shardscope "), said)
            recording = runs.ROOT / "tests" / "corpora" / "recordings" / "version7.zscope"
            script = f"import shardscope; from shardscope import _command; print(_command.program(), shardscope.open({str(recording)!r}).summary()['steps'])"
            opened = subprocess.run([runs.PYTHON, "-c", script], env=environment, cwd=scratch, capture_output=True, text=True, check=True).stdout
            self.assertRegex(opened, f"^{re.escape(str(prefix / 'bin' / 'shardscope'))} [1-9]")


if __name__ == "__main__":
    unittest.main()
