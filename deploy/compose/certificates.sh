#!/usr/bin/env bash
# Makes what weirs that share etcd trust each other by: an authority of their own, a
# certificate for etcd, one for the weirs, and the file with the instance's key. What is
# there stays, so that it can run again.
#
#   AUTHORITY  directory of the authority's key, for nobody else
#   ETCD       directory for etcd: ca.pem, etcd.pem, etcd-key.pem
#   WEIR       directory for the weirs: ca.pem, weir.pem, weir-key.pem, keys
set -euo pipefail
: "${AUTHORITY:?}" "${ETCD:?}" "${WEIR:?}"
umask 077

# put FILE writes what it is given, whole, readable for who has the directory: a volume is
# there for one service alone, whoever it runs as.
put() {
  cat >"$1.new"
  chmod 0444 "$1.new"
  mv -f "$1.new" "$1"
}

if [ ! -s "$AUTHORITY/ca.pem" ]; then
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -days 3650 -subj "/CN=authority of the trial" \
    -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign \
    -keyout "$AUTHORITY/ca-key.pem" -out "$AUTHORITY/ca.new" 2>/dev/null
  mv "$AUTHORITY/ca.new" "$AUTHORITY/ca.pem"
  rm -f "$ETCD"/*.pem "$WEIR"/*.pem # of another authority
fi

# certificate DIRECTORY NAME EXTENSIONS
certificate() {
  put "$1/ca.pem" <"$AUTHORITY/ca.pem"
  if [ -s "$1/$2.pem" ]; then
    return
  fi
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -subj "/CN=$2" -keyout "$AUTHORITY/$2.key" -out "$AUTHORITY/$2.csr" 2>/dev/null
  openssl x509 -req -in "$AUTHORITY/$2.csr" -CA "$AUTHORITY/ca.pem" -CAkey "$AUTHORITY/ca-key.pem" -days 3650 \
    -extfile <(printf 'keyUsage=critical,digitalSignature\n%s\n' "$3") -out "$AUTHORITY/$2.pem" 2>/dev/null
  put "$1/$2-key.pem" <"$AUTHORITY/$2.key"
  put "$1/$2.pem" <"$AUTHORITY/$2.pem"
  rm "$AUTHORITY/$2".*
}

# etcd is a client of itself as well.
certificate "$ETCD" etcd $'extendedKeyUsage=serverAuth,clientAuth\nsubjectAltName=DNS:etcd,DNS:localhost,IP:127.0.0.1'
certificate "$WEIR" weir extendedKeyUsage=clientAuth
if [ ! -s "$WEIR/keys" ]; then
  openssl rand -base64 32 | put "$WEIR/keys"
fi
