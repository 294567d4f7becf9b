package userdata

import "strings"

// FetchedToken says how a node gets what it joins with where that is not in the
// user data: from a parameter of AWS Systems Manager, by the AWS CLI, right
// before kubeadm runs. The parameter holds one line, divided by spaces: the
// token, host and port of the API server, and the hashes of the cluster's CA.
type FetchedToken struct {
	// Parameter is its name and Region where it is, both of letters, digits and
	// the characters _.-/ alone; placeholders may stand for them.
	Parameter, Region string
	// Endpoint and CA say that these are taken from the parameter too.
	Endpoint, CA bool
}

// What stands in kubeadm's configuration until the node has fetched the values.
const (
	waitingToken    = "weir-join-token"
	waitingEndpoint = "weir-api-server"
	waitingCA       = "weir-ca-hashes"
)

// Marks in the script until the document is written: placeholders have bytes that
// no YAML block can hold.
const (
	markParameter = "weir-mark-of-the-parameter"
	markRegion    = "weir-mark-of-the-region"
)

const (
	joinConfigPath = "/run/kubeadm/kubeadm-join-config.yaml"
	fetchScript    = "/run/kubeadm/weir-join-token.sh"
)

// script is the shell script that fetches the values and writes them into
// kubeadm's configuration. It tries for five minutes, since credentials of a new
// instance profile take a while to work, and prints neither token nor answer. It
// must hold nothing that jinja, which cloud-init passes it through, knows.
func (FetchedToken) script() string {
	lines := []string{
		"#!/bin/sh",
		"# Fetches what this node joins its cluster with. weir keeps the parameter.",
		"set -euf",
		"parameter=" + markParameter,
		"region=" + markRegion,
		"config=" + joinConfigPath,
		"if ! command -v aws >/dev/null; then",
		"  echo 'weir: the image has no AWS CLI, so the join token cannot be fetched' >&2",
		"  exit 1",
		"fi",
		"tries=0",
		`until value=$(aws ssm get-parameter --region "$region" --name "$parameter" --with-decryption --query Parameter.Value --output text); do`,
		"  tries=$((tries + 1))",
		`  if [ "$tries" -ge 60 ]; then`,
		`    echo "weir: the join token could not be fetched; the instance profile needs ssm:GetParameter on parameter $parameter" >&2`,
		"    exit 1",
		"  fi",
		"  sleep 5",
		"done",
		`case "$value" in`,
		"*[!]a-zA-Z0-9.:_[' '-]*)",
		`  echo "weir: parameter $parameter holds no join token" >&2`,
		"  exit 1",
		"  ;;",
		"esac",
		"set -- $value",
		`if [ "$#" -lt 3 ]; then`,
		`  echo "weir: parameter $parameter holds no join token" >&2`,
		"  exit 1",
		"fi",
		"token=$1 server=$2 hashes=",
		"shift 2",
		`for hash in "$@"; do`,
		`  hashes="$hashes${hashes:+, }\"$hash\""`,
		"done",
		`sed -i -f /dev/stdin "$config" <<EOF`,
		`s|^\( *token: \)` + waitingToken + `$|\1"$token"|`,
		`s|^\( *apiServerEndpoint: \)` + waitingEndpoint + `$|\1"$server"|`,
		`s|^\( *caCertHashes: \)` + waitingCA + `$|\1[$hashes]|`,
		"EOF",
		"",
	}
	return strings.Join(lines, "\n")
}

// fill puts parameter and region into the document.
func (f *FetchedToken) fill(text string) string {
	if f == nil {
		return text
	}
	return strings.NewReplacer(markParameter, f.Parameter, markRegion, f.Region).Replace(text)
}

// wait writes into kubeadm's discovery what the script replaces.
func (f FetchedToken) wait(token map[string]any) {
	token["token"] = waitingToken
	if f.Endpoint {
		token["apiServerEndpoint"] = waitingEndpoint
	}
	if f.CA {
		token["caCertHashes"] = waitingCA
	}
}
