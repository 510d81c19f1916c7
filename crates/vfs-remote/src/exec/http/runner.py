def _run_script(call):
    import base64, json, os, signal, subprocess, tempfile, time

    call = json.loads(base64.b64decode(call))
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        stdin.write(base64.b64decode(call["stdin"]))
        stdin.seek(0)
        command = ["sh", "-c", base64.b64decode(call["script"])]
        process = subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True)

        def end(number):
            try:
                os.killpg(process.pid, number)
            except ProcessLookupError:
                pass

        late = False
        try:
            process.wait(min(call["seconds"], 86400))
        except subprocess.TimeoutExpired:
            late = True
            end(signal.SIGTERM)
            time.sleep(0.3)
            end(signal.SIGKILL)
            process.wait()
        except BaseException:
            end(signal.SIGKILL)
            raise

        # A process that the script left behind writes on: its place in the files must not be moved.
        report = {"code": process.returncode, "late": late, "cut": False}
        for name, file in ("stdout", stdout), ("stderr", stderr):
            size, most = os.fstat(file.fileno()).st_size, call["limit"]
            head = most // 2 if call["ends"] and size > most else min(size, most)
            tail = min(size, most) - head
            kept = os.pread(file.fileno(), head, 0) + os.pread(file.fileno(), tail, size - tail)
            report[name], report[name + "_bytes"] = base64.b64encode(kept).decode(), size
            report["cut"] |= size > most
        print(call["tag"] + json.dumps(report) + call["tag"])

