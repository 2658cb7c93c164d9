"""Who may connect, from the command line: keys found by the endpoint alone, keys of a folder, and `--insecure`."""

import contextlib
import os
import pathlib
import socket
import stat
import subprocess
import tempfile
import time

from command_line import BIN, ENV, ROOT, CommandTest, main, read, said, shardscope


def three_free_ports():
    while True:
        with contextlib.ExitStack() as held:
            first = held.enter_context(socket.socket())
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            try:
                for number in (port + 1, port + 2):
                    held.enter_context(socket.socket()).bind(("127.0.0.1", number))
                return port
            except OSError:
                continue


class Access(CommandTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        runtime = self.folder / "runtime"
        runtime.mkdir(mode=0o700)
        self.environment = {**ENV, "XDG_RUNTIME_DIR": str(runtime)}
        self.keys = runtime / "shardscope"

    @contextlib.contextmanager
    def recorder(self, recording, *options):
        endpoint = f"tcp://127.0.0.1:{three_free_ports()}"
        process = subprocess.Popen([BIN / "shardscope", "record", recording, "--listen", endpoint, *options],
                                   env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            until = time.monotonic() + 30
            while not any(self.keys.glob("tcp-*")) and time.monotonic() < until:
                time.sleep(0.02)
            yield process, endpoint
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
            process.stderr.close()

    def publish(self, endpoint, **changed):
        return subprocess.run([BIN / "shardscope", "simulate", "--model", "mlp", "--ranks", "2", "--steps", "2", "--connect",
                               endpoint], env={**self.environment, **changed}, text=True, capture_output=True, timeout=120)

    def test_programs_of_the_user_find_the_keys(self):
        recording = self.folder / "run.zscope"
        with self.recorder(recording) as (recorder, endpoint):
            [folder] = self.keys.iterdir()
            self.assertEqual(stat.S_IMODE(folder.stat().st_mode), 0o700)
            for right in ("control", "view"):
                output = subprocess.run([BIN / "shardscope", "keys", "--of", endpoint, "--role", right], env=self.environment,
                                      text=True, capture_output=True)
                self.assertEqual((output.returncode, output.stdout), (0, f"{folder}/{right}.key\n"))
            made = self.publish(endpoint)
            self.assertEqual(made.returncode, 0, made.stderr)
            recorder.wait(timeout=60)
            self.assertEqual(recorder.returncode, 0)
        self.assertEqual(list(self.keys.iterdir()), [])
        info = read("info", recording)
        self.assertTrue(info["complete"])
        self.assertEqual((info["control"], info["detail_lowered"]), ([], False))
        none = subprocess.run([BIN / "shardscope", "keys", "--of", endpoint], env=self.environment, text=True, capture_output=True)
        self.assertEqual((none.returncode, none.stdout), (1, ""))
        self.assertIn(endpoint, none.stderr)

    def test_insecure_is_named(self):
        recording = self.folder / "run.zscope"
        with self.recorder(recording, "--insecure") as (recorder, endpoint):
            # As another user: nothing is found, and only who asks for it connects without a key.
            elsewhere = self.folder / "elsewhere"
            elsewhere.mkdir(mode=0o700)
            made = self.publish(endpoint, XDG_RUNTIME_DIR=str(elsewhere), HOME=str(elsewhere), SHARDSCOPE_KEY="none")
            self.assertEqual(made.returncode, 0, made.stderr)
            recorder.wait(timeout=60)
            self.assertIn("--insecure: anyone who reaches " + endpoint, recorder.stderr.read())
        [control] = read("info", recording)["control"]
        self.assertIn("--insecure: anyone who reaches " + endpoint, control["text"])
        self.assertIn("--insecure", said("info", recording))
        self.assertIn("--insecure", said("summary", recording))

    def test_a_run_passes_its_keys_on(self):
        recording = self.folder / "run.zscope"
        command = [BIN / "shardscope", "run", "--config", ROOT / "samples/stage0.json", "--ranks", "2", "--model", "mlp",
                   "--steps", "2", "--record", recording]
        # What the user's own environment has is for another collector.
        said("keys", self.folder / "other")
        for key in ("", str(self.folder / "other/view.key")):
            ran = subprocess.run([*command, "--overwrite"], env={**self.environment, "SHARDSCOPE_KEY": key}, text=True,
                                 capture_output=True, timeout=120)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertEqual(len(read("info", recording)["ranks"]), 2)
            self.assertNotIn("no collector answers", ran.stderr)
        self.assertEqual(list(self.keys.iterdir()), [])

    def test_key_folders_and_names_are_checked(self):
        keys = self.folder / "keys"
        said("keys", keys)
        before = (keys / "collector.key").read_text()
        for name in ("a\nb", "a\nallow control x", "a b", "", "../a", "collector"):
            refused = shardscope("keys", keys, "--add", f"view={name}")
            self.assertEqual(refused.returncode, 2, name)
            self.assertIn("letters, digits", refused.stderr)
            self.assertEqual(refused.stderr.count("\n"), 1)
        self.assertEqual((keys / "collector.key").read_text(), before)
        said("keys", keys, "--add", "view=anna.b_c-2")
        self.assertIn(" anna.b_c-2\n", (keys / "collector.key").read_text())
        recording = self.folder / "run.zscope"
        for path, word in ((keys, "chmod 700"), (keys / "publish.key", "publish.key")):
            mode = stat.S_IMODE(path.stat().st_mode)
            os.chmod(path, mode | 0o050)
            self.refused(["record", recording, "--keys", keys, "--listen", "tcp://127.0.0.1:0"], str(keys), word)
            self.refused(["keys", keys, "--add", "view=eve"], str(keys), word)
            os.chmod(path, mode)
        open_folder = self.folder / "open"
        open_folder.mkdir(mode=0o755)
        self.refused(["keys", open_folder], str(open_folder), "chmod 700")
        self.assertEqual(list(open_folder.iterdir()), [])


if __name__ == "__main__":
    main()
