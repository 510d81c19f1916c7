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

        # A process that the script left behind may still write: do not move its position in the files.
        report = {"code": process.returncode, "late": late, "cut": False}
        for name, file in ("stdout", stdout), ("stderr", stderr):
            size, limit = os.fstat(file.fileno()).st_size, call["limit"]
            head = limit // 2 if call["ends"] and size > limit else min(size, limit)
            tail = min(size, limit) - head
            retained = os.pread(file.fileno(), head, 0) + os.pread(file.fileno(), tail, size - tail)
            report[name], report[name + "_bytes"] = base64.b64encode(retained).decode(), size
            report["cut"] |= size > limit
        print(call["tag"] + json.dumps(report) + call["tag"])

