"""Tells why ranks wait: supervises a team, and explains its end.

Seen are calls on groups of `torch.distributed`, sends and receives among them. What else a rank may
wait for counts as computing, until the deadline, whose error says where each rank stood:

- a lock, a file, a socket, `torch.distributed.rpc`, a store;
- a call with a time-out of its own, as `work.wait(timeout)`: it may still go on by itself;
- anything, as long as another thread of that rank may still call;
- a message from a rank that returned without waiting for its `isend`: it may still arrive. The
  deadline's error names that send.
"""
