#!/bin/sh
# Builds the image of the tests' broker and prints its name: image.sh NAME. Pulls nothing; it consists of a Java
# runtime by jlink, the libraries that it loads, a static busybox as /bin/sh, and Kafka's jars.
set -eu
cd "$(dirname "$0")/../../.."
name=${1:?usage: image.sh NAME}
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
root=$context/root
mkdir -p "$root/bin" "$root/etc" "$root/kafka" "$context/data"
mkdir -m 1777 "$root/tmp"

# java.desktop is for log4j-core, jdk.unsupported for Kafka's own memory.
jlink --output "$root/java" --strip-debug --no-header-files --no-man-pages --add-modules \
java.base,java.desktop,java.logging,java.management,java.naming,java.security.jgss,java.security.sasl,java.xml,jdk.unsupported

# zstd-jni loads libpthread by itself: ldd does not show it.
lib=$root/java/lib
for library in $(LD_LIBRARY_PATH="$lib:$lib/server" ldd "$root/java/bin/java" "$lib/server/libjvm.so" "$lib/libzip.so" |
    grep -o '/[^ ]*' | grep -v -e ':$' -e "^$root" | sort -u); do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
    pthread=$(dirname "$library")/libpthread.so.0
    if [ -e "$pthread" ]; then cp -L "$pthread" "$root$pthread"; fi
done

cp "$(command -v busybox)" "$root/bin/busybox"
for tool in sh sed mkdir head base64 tr; do ln -s busybox "$root/bin/$tool"; done
cp -r "$(.venv/bin/python -c 'from deniable.deploy.broker.jars import fetch_jars; print(fetch_jars())')" "$root/kafka/libs"
cp deploy/broker/kafka/start.sh deploy/broker/kafka/server.properties deploy/broker/kafka/log4j2.properties "$root/kafka"
echo 'kafka:x:10001:10001::/data:/bin/sh' >"$root/etc/passwd"
echo '127.0.0.1 localhost' >"$root/etc/hosts"

cp deploy/broker/kafka/Dockerfile "$context"
docker build --quiet --tag "$name" "$context" >&2
echo "$name"
