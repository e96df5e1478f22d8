"""The mean grows with the job."""

CHANGE = """
-    return 86400 * days / failures * num_gpus / job_gpus
+    return 86400 * days / failures * job_gpus / num_gpus
"""
