#!/bin/sh
# Builds a substitute for python:slim where no image can be pulled: base.sh NAME. It has the Python of .venv on this
# machine and the libraries that it loads; no shell, no package manager.
set -eu
cd "$(dirname "$0")/../.."
name=${1:?usage: base.sh NAME}
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
python=$(.venv/bin/python -c 'import os, sys; print(os.path.realpath(sys.executable))')
library=$("$python" -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')

mkdir -p "$root$(dirname "$python")" "$root$library" "$root/usr/bin" "$root/etc"
mkdir -m 1777 "$root/tmp"
cp "$python" "$root$python"
tar -C "$library" --exclude=site-packages --exclude=test --exclude=__pycache__ -c . | tar -C "$root$library" -x
if [ "$python" != /usr/bin/python3 ]; then ln -s "$python" "$root/usr/bin/python3"; fi
# Wheels of PyPI (manylinux) expect these on every system, beside what Python itself loads.
{
    find "$library/lib-dynload" -name '*.so' -exec ldd "$python" {} + | grep -o '/[^ ]*' | grep -v ':$'
    ldconfig -p | grep -E 'x86-64|AArch64' |
        grep -oE '/[^ ]*/lib(stdc\+\+|gcc_s|m|c|dl|rt|pthread|z|util|nss_files|nss_dns|resolv)\.so\.[0-9]+$'
} | sort -u | while read -r file; do
    mkdir -p "$root$(dirname "$file")"
    cp -L "$file" "$root$file"
done
echo 'deniable:x:10001:10001::/var/lib/deniable:/bin/false' >"$root/etc/passwd"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
cat >"$root/Dockerfile" <<'FILE'
FROM scratch
COPY . /
ENV PATH=/usr/bin
FILE
echo Dockerfile >"$root/.dockerignore"
docker build --quiet --tag "$name" "$root" >&2
echo "$name"
