"""Requests about files, and the transfers that they begin."""

import binascii

import files

MAX_TRANSFERS = 8


class Transfers:
    """Files on their way in, by transfer id; files on their way out are pulled by the output."""

    def __init__(self, supervisor):
        self._supervisor = supervisor
        self._puts = {}
        self._outgoing = 0
        self.requests = {
            "put_file_request": self._put,
            "transfer_end": self._end,
            "list_files_request": self._list,
            "get_file_request": self._get,
        }

    def _put(self, request):
        content = request["content"]
        try:
            transfer = binascii.unhexlify(content.get("transfer") or "")
            size = content.get("bytes")
            if len(transfer) != 16 or not isinstance(size, int) or size < 0 or transfer in self._puts:
                raise files.FileError("the transfer's id or size is wrong")
            if len(self._puts) >= MAX_TRANSFERS:
                raise files.FileError("too many transfers at once")
            put = files.Put(self._supervisor.workdir, content.get("path"), size, 0o644)
        except (files.FileError, binascii.Error, TypeError) as error:
            self._supervisor.refuse(request, str(error), "FileError")
            return
        self._puts[transfer] = (request, put)

    def chunk(self, transfer, data):
        """A piece of a raw chunk from the host; one of a refused transfer is dropped."""
        begun = self._puts.get(transfer)
        if begun is not None:
            begun[1].write(data)

    def _end(self, message):
        content = message["content"]
        try:
            begun = self._puts.pop(binascii.unhexlify(content.get("transfer") or ""), None)
        except (binascii.Error, TypeError):
            begun = None
        if begun is None:
            return
        request, put = begun
        if content.get("cancelled"):
            put.abort()
            self._supervisor.refuse(request, "cancelled", "Cancelled")
            return
        try:
            size, digest = put.finish(content.get("bytes"), content.get("sha256"))
        except files.FileError as error:
            self._supervisor.refuse(request, str(error), "FileError")
            return
        self._supervisor.executions.snapshot.note(put.path, put.info, digest)
        reply = {"status": "ok", "path": put.path, "bytes": size, "sha256": digest}
        self._supervisor.reply(request["header"], "put_file_reply", reply)

    def _list(self, request):
        listing = files.listing(self._supervisor.workdir)
        self._supervisor.reply(request["header"], "list_files_reply", {"status": "ok", **listing})

    def _get(self, request):
        content = request["content"]
        limit = content.get("limit")
        if not isinstance(limit, int) or self._outgoing >= MAX_TRANSFERS:
            self._supervisor.refuse(request, "no limit given, or too many transfers at once", "FileError")
            return
        try:
            get = files.Get(self._supervisor.workdir, content.get("path"), limit)
        except files.FileError as error:
            self._supervisor.refuse(request, str(error), "FileError")
            return
        self._outgoing += 1
        # Said first, so that the host can match the chunks that follow.
        self._supervisor.event("transfer_begin", {"transfer": get.transfer.hex()}, request["header"])
        self._supervisor.output.stream(lambda: self._next(request, get))

    def _next(self, request, get):
        try:
            chunk = get.next_chunk()
            if chunk is not None:
                return chunk
            reply = get.finish()
        except (files.FileError, OSError) as error:
            reply = {"status": "error", "ename": "FileError", "evalue": str(error)}
        get.close()
        self._outgoing -= 1
        self._supervisor.reply(request["header"], "get_file_reply", reply)
        return None
