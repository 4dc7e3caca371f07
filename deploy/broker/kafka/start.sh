#!/bin/sh
# Entry point of the image: formats an empty folder, then becomes the broker on the loopback ports PORT and
# CONTROLLER_PORT.
set -eu
: "${PORT:?must be the port of clients}" "${CONTROLLER_PORT:?must be the port of the controller}"
sed -e "s/\${port}/$PORT/" -e "s/\${controller_port}/$CONTROLLER_PORT/" /kafka/server.properties >server.properties
export CLASSPATH="/kafka/libs/*"
mkdir -p tmp
java="java -XX:-UsePerfData -Djava.io.tmpdir=/data/tmp -Dlog4j2.configurationFile=/kafka/log4j2.properties"
if [ ! -e kafka/meta.properties ]; then
    id=$(head -c 16 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=')
    # shellcheck disable=SC2086 # several words
    $java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC kafka.tools.StorageTool format --standalone \
        --cluster-id="$id" --config=server.properties
fi
# shellcheck disable=SC2086 # several words
exec $java -Xmx768m kafka.Kafka server.properties
