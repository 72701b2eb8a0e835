"""plugin.py - a device plugin of the kubelet whose devices are said to be healthy, and which then allocates none: the kubelet
refuses each pod that the scheduler sends for one. Its messages are few and short, so they are written here byte by byte."""

import time
from concurrent import futures

import grpc

FOLDER = "/var/lib/kubelet/device-plugins"
SOCKET = "broken.sock"
RESOURCE = "example.com/broken"
COUNT = 8


def text(number, value):
    """A field of a message: a string or a message, shorter than 128 bytes."""
    value = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | 2, len(value)]) + value


def devices(request, context):
    yield b"".join(text(1, text(1, f"device-{i}") + text(2, "Healthy")) for i in range(COUNT))
    while context.is_active():
        time.sleep(1)


def refuse(request, context):
    context.abort(grpc.StatusCode.INTERNAL, "no device answers")


def empty(request, context):
    return b""


def main():
    server = grpc.server(futures.ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("v1beta1.DevicePlugin", {
        "GetDevicePluginOptions": grpc.unary_unary_rpc_method_handler(empty),
        "ListAndWatch": grpc.unary_stream_rpc_method_handler(devices),
        "Allocate": grpc.unary_unary_rpc_method_handler(refuse),
    })])
    server.add_insecure_port(f"unix:{FOLDER}/{SOCKET}")
    server.start()
    with grpc.insecure_channel(f"unix:{FOLDER}/kubelet.sock") as channel:
        register = channel.unary_unary("/v1beta1.Registration/Register")
        register(text(1, "v1beta1") + text(2, SOCKET) + text(3, RESOURCE), wait_for_ready=True)
    server.wait_for_termination()


main()
