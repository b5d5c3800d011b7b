#!/bin/sh
# Makes an authority for this installation and a certificate of Redis, for compose.tls.yaml.
# The key of the authority is deleted: for a new certificate, run this again and restart all.
set -eu
cd "$(dirname "$0")"
days=825
openssl req -x509 -newkey rsa:3072 -sha256 -nodes -days "$days" -subj "/CN=Fairshift's Redis authority" \
    -keyout ca.key -out ca.crt 2> /dev/null
openssl req -newkey rsa:3072 -sha256 -nodes -subj "/CN=redis" -keyout redis.key -out redis.csr 2> /dev/null
printf 'subjectAltName=DNS:redis\nextendedKeyUsage=serverAuth\n' > redis.ext
openssl x509 -req -in redis.csr -CA ca.crt -CAkey ca.key -CAcreateserial -sha256 -days "$days" \
    -extfile redis.ext -out redis.crt 2> /dev/null
rm -f ca.key ca.srl redis.csr redis.ext
# Redis runs as another user of this machine, and gets each file by itself. No other user passes
# through the folder.
chmod 644 ca.crt redis.crt redis.key
chmod 700 .
