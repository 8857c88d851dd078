"""Two threads that set up at the same time do it once.

The second thread is let in exactly between the first one's look and act; no luck is involved.
"""

# /// script
# [tool.conformance]
# level = "must"
# timeout = 30
# ///

import threading

import torch_npu

from harness import probe

second_arrived = threading.Event()
second: list[threading.Thread] = []


def window() -> None:
    if threading.current_thread() is threading.main_thread():
        second.append(threading.Thread(target=torch_npu.setup, args=(second_arrived.set, second_arrived.set)))
        second[0].start()
        second_arrived.wait()


torch_npu.setup(window, lambda: None)
second[0].join()
probe.equal(torch_npu.setups, 1, "number of setups")
