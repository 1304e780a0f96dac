"""The backend on TensorFlow: graphs by `tf.function`, data by `tf.data`."""
