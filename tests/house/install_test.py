#!/usr/bin/env python3
"""`cmake --install` and the Debian packages are complete, and what they hold runs from where it was put: no source tree
and no build folder beside it.

Usage: install_test.py BUILD_FOLDER [unittest arguments]
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv[1]).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
ENV = {name: value for name, value in os.environ.items() if not name.startswith("SHARDSCOPE_") and name != "DISPLAY"}
GUI = (BUILD / "bin/shardscope-gui").exists()
# Relative to the prefix, with the component that has it.
FILES = {
    "bin/shardscope": "cli", "bin/zero_train": "cli", "bin/zero_simulate": "cli", "bin/shardscope-gui": "gui",
    "lib/libshardscope.so.1": "cli", "lib/libnccl-profiler-shardscope.so": "cli",
    "include/shardscope/shardscope.h": "cli", "lib/libshardscope.so": "cli", "lib/pkgconfig/shardscope.pc": "cli",
    "share/shardscope/python/pyproject.toml": "cli", "share/shardscope/python/shardscope/__init__.py": "cli",
    "share/shardscope/python/src/core.cpp": "cli", "share/shardscope/app/arrow/reader.h": "cli",
    "share/shardscope/app/arrow/c_data.h": "cli",
    "share/shardscope/samples/demo.json": "cli", "share/shardscope/samples/models": "cli",
    "share/shardscope/assets/hardware/h100.json": "cli", "share/shardscope/docs/guide.md": "cli",
    "share/man/man1/shardscope.1": "cli", "share/man/man1/shardscope-run.1": "cli",
    "share/man/man1/zero_train.1": "cli", "share/man/man1/zero_simulate.1": "cli", "share/man/man1/shardscope-gui.1": "gui",
    "share/bash-completion/completions/shardscope": "cli", "share/zsh/site-functions/_shardscope": "cli",
    "share/zsh/vendor-completions/_shardscope": "cli", "share/fish/vendor_completions.d/shardscope.fish": "cli",
    "share/applications/shardscope.desktop": "gui", "share/icons/hicolor/scalable/apps/shardscope.svg": "gui",
    "share/mime/packages/shardscope.xml": "gui",
    "share/doc/shardscope-cli/copyright": "cli", "share/doc/shardscope/copyright": "gui",
}


def run(*command, **options):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=ENV,
                            stdin=subprocess.DEVNULL, timeout=300, **options)
    if result.returncode != 0:
        raise AssertionError(f"{command}: {result.returncode}\n{result.stdout}\n{result.stderr}")
    return result.stdout


class Installed(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def check_files(self, prefix, components):
        for name, component in FILES.items():
            if component in components and (GUI or component == "cli"):
                self.assertTrue((prefix / name).exists(), f"{name} is missing below {prefix}")

    def check_programs(self, prefix):
        """With data of the prefix: a sample, a description of machines, the default text."""
        shardscope = prefix / "bin/shardscope"
        self.assertIn("libraries", run(shardscope, "--version"))
        recording = self.path / "simulated.zscope"
        run(shardscope, "simulate", "--ranks", "2", "--hardware", "a100", "--model", "gpt2", "--steps", "2", "-o", recording,
            cwd=self.path)
        self.assertIn("simulated", run(shardscope, "info", recording))
        html = self.path / "report.html"
        run(shardscope, "report", recording, "-o", html)
        self.assertIn("</html>", html.read_text(encoding="utf-8"))
        trained = self.path / "trained.zscope"
        run(shardscope, "run", "--config", prefix / "share/shardscope/samples/stage3.json", "--ranks", "1", "--model", "gpt-mini", "--steps", "2", "--record", trained, cwd=self.path)
        self.assertRegex(run(shardscope, "summary", trained), r"(?m)^steps +2 ")
        if (prefix / "bin/shardscope-gui").exists():
            picture = self.path / "picture.png"
            run(shardscope, "view", recording, "--screenshot", picture, "--size", "640x400")
            self.assertTrue(picture.read_bytes().startswith(b"\x89PNG"))

    def check_c_program(self, prefix):
        """The sample, as a runtime elsewhere would be: by what pkg-config says, and run without a collector."""
        flags = run("env", f"PKG_CONFIG_PATH={prefix / 'lib/pkgconfig'}", "pkg-config", "--cflags", "--libs", "shardscope").split()
        program = self.path / "zero3_run"
        run("cc", "-std=c99", prefix / "share/shardscope/samples/c-api/zero3_run.c", *flags, "-o", program)
        said = run("env", f"LD_LIBRARY_PATH={prefix / 'lib'}", program, "0", "1", "ipc:///nowhere/that/exists", "1")
        self.assertIn("0 events dropped, 0 invalid", said)

    def check_python_sources(self, prefix):
        """They name what the package is built of; tests/attach/wheel_test.py builds it."""
        folder = prefix / "share/shardscope/python"
        script = self.path / "where.cmake"
        script.write_text(f'include("{folder}/installed.cmake")\n'
                          'message("${lib}|${SHARDSCOPE_INCLUDE}|${SHARDSCOPE_PROGRAM_FOLDER}")\n', encoding="utf-8")
        said = subprocess.run(["cmake", "-P", script], capture_output=True, text=True, check=True).stderr.strip()
        lib, include, programs = (pathlib.Path(part) for part in said.split("|"))
        for file in (lib / "libshardscope.so.1", lib / "libshardscope_reader.so", include / "shardscope/shardscope.h",
                     programs / "shardscope"):
            self.assertTrue(file.exists() and file.is_relative_to(prefix), file)

    def test_a_prefix_runs_where_it_is_moved_to(self):
        made = self.path / "made"
        run("cmake", "--install", BUILD, "--prefix", made)
        prefix = self.path / "moved"
        made.rename(prefix)
        self.check_files(prefix, ("cli", "gui"))
        self.check_programs(prefix)
        self.check_python_sources(prefix)

    def test_without_the_dashboard_the_message_names_its_package(self):
        run("cmake", "--install", BUILD, "--prefix", self.path, "--component", "cli")
        self.assertFalse((self.path / "bin/shardscope-gui").exists())
        self.check_files(self.path, ("cli",))
        result = subprocess.run([self.path / "bin/shardscope", "view", "x.zscope"], capture_output=True, text=True, env=ENV)
        self.assertEqual(result.returncode, 1)
        self.assertIn("install the package that holds it (shardscope)", result.stderr)


@unittest.skipUnless(shutil.which("dpkg-deb") and shutil.which("dpkg-shlibdeps"), "no Debian system")
class Packages(Installed):
    @classmethod
    def setUpClass(cls):
        cls.made = tempfile.TemporaryDirectory()
        # Fast: the packages are looked at, not kept.
        run("cpack", "-G", "DEB", "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip", "-B", cls.made.name, cwd=BUILD)
        cls.packages = {path.name.split("_")[0]: path for path in pathlib.Path(cls.made.name).glob("*.deb")}

    @classmethod
    def tearDownClass(cls):
        cls.made.cleanup()

    test_a_prefix_runs_where_it_is_moved_to = None
    test_without_the_dashboard_the_message_names_its_package = None

    def depends(self, package):
        field = run("dpkg-deb", "-f", self.packages[package], "Depends")
        return {re.split(r"[ (|]", part.strip())[0] for part in field.split(",")}

    def test_names_and_dependencies(self):
        self.assertEqual(set(self.packages), {"shardscope-cli", "shardscope"} if GUI else {"shardscope-cli"})
        cli = self.depends("shardscope-cli")
        self.assertLessEqual({"libc6", "libstdc++6", "libzmq5", "libsqlite3-0", "libzstd1", "openmpi-bin"}, cli)
        graphical = [name for name in cli if re.match(r"lib(gl|egl|opengl|x11|wayland|fontconfig|png)", name)]
        self.assertEqual(graphical, [], "shardscope-cli is for machines without a display")
        if GUI:
            self.assertLessEqual({"shardscope-cli", "libfontconfig1", "libx11-6", "libc6"}, self.depends("shardscope"))

    def test_every_file_is_in_one_package(self):
        held = {}
        for package, path in self.packages.items():
            for line in run("dpkg-deb", "-c", path).splitlines():
                name = line.split(None, 5)[5]
                if not name.endswith("/"):
                    self.assertNotIn(name, held, f"in {package} and {held.get(name)}")
                    held[name] = package

    def test_programs_run_from_the_packages(self):
        for path in self.packages.values():
            run("dpkg-deb", "-x", path, self.path / "root")
        prefix = self.path / "root/usr"
        self.check_files(prefix, ("cli", "gui"))
        self.check_programs(prefix)
        self.check_python_sources(prefix)
        self.check_c_program(prefix)


class DesktopFiles(unittest.TestCase):
    def test_the_recording_s_file_type(self):
        schema = (ROOT / "app/store/recording_schema.h").read_text(encoding="utf-8")
        number = int(re.search(r"kRecordingApplicationId = (0x\w+)", schema)[1], 16)
        text = (ROOT / "assets/desktop/shardscope.xml").read_text(encoding="utf-8")
        self.assertIn(f'offset="68" value="{number.to_bytes(4, "big").decode()}"', text)
        entry = (ROOT / "assets/desktop/shardscope.desktop").read_text(encoding="utf-8")
        self.assertIn(re.search(r'mime-type type="(.*?)"', text)[1], entry)

    @unittest.skipUnless(shutil.which("desktop-file-validate"), "desktop-file-validate is not installed")
    def test_the_desktop_entry_is_valid(self):
        run("desktop-file-validate", ROOT / "assets/desktop/shardscope.desktop")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
