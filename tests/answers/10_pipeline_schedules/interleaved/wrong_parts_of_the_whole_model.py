"""Numbers the parts of the whole model, as torch does, where chunks of a stage are asked for."""

CHANGE = """
-        ahead = 2 * (num_stages - stage - 1) + (num_chunks - 1) * group_size
-        ahead = min(ahead, len(pairs))
+        ahead = min(2 * (num_stages - stage - 1) + (num_chunks - 1) * group_size, len(pairs))

-        orders.append(order + backwards[len(pairs) - ahead :])
+        order += backwards[len(pairs) - ahead :]
+        orders.append([(kind, i, chunk * num_stages + stage) for kind, i, chunk in order])
"""
