package userdata

import "strings"

// FetchedToken describes how a node gets its join data if this is not in the user data. The node reads a
// parameter of AWS Systems Manager right before kubeadm runs. It uses the AWS CLI, or curl with Ignition. The
// parameter has one line with three parts separated by spaces: the token, host and port of the API server,
// and the hashes of the cluster's CA.
type FetchedToken struct {
	// Parameter is the name of the parameter, and Region its region. Both contain only letters, digits and
	// the characters _.-/, or are placeholders.
	Parameter, Region string
	// Endpoint and CA are true if these values also come from the parameter.
	Endpoint, CA bool
}

// Values in kubeadm's configuration until the node has fetched the real ones.
const (
	waitingToken    = "weir-join-token"
	waitingEndpoint = "weir-api-server"
	waitingCA       = "weir-ca-hashes"
)

// Marks in the script until the document is written. Placeholders contain bytes that a YAML block cannot
// contain.
const (
	markParameter = "weir-mark-of-the-parameter"
	markRegion    = "weir-mark-of-the-region"
)

const (
	joinConfigPath = "/run/kubeadm/kubeadm-join-config.yaml"
	fetchScript    = "/run/kubeadm/weir-join-token.sh"

	ignitionFetchScript = "/etc/weir-join-token.sh"
	ignitionJoinConfig  = "/run/weir-kubeadm.yml"
)

// script returns the shell script that fetches the values with the AWS CLI and writes them to kubeadm's
// configuration. It must not contain jinja expressions, because cloud-init expands them.
func (FetchedToken) script() string {
	return joinScript([]string{
		"config=" + joinConfigPath,
		"if ! command -v aws >/dev/null; then",
		"  echo 'weir: the image has no AWS CLI, so the join token cannot be fetched' >&2",
		"  exit 1",
		"fi",
	}, `aws ssm get-parameter --region "$region" --name "$parameter" --with-decryption --query Parameter.Value --output text`)
}

// ignitionScript is like script, for images with Ignition. They have no AWS CLI, but a curl that can sign
// requests to AWS. Credentials and answers go through pipes, so that a list of processes does not show them.
// The token is written to a copy in memory, so the file on disk still waits for a token after a failed boot.
func (FetchedToken) ignitionScript() string {
	return joinScript([]string{
		"config=" + ignitionJoinConfig,
		"if ! command -v curl >/dev/null; then",
		"  echo 'weir: the image has no curl, so the join token cannot be fetched' >&2",
		"  exit 1",
		"fi",
		"umask 077",
		`cp ` + ignitionConfig + ` "$config"`,
		"metadata() {",
		`  printf 'header = "X-aws-ec2-metadata-token: %s"\n' "$session" |`,
		`    curl -sSf -m 5 --noproxy '*' -K - "http://169.254.169.254/latest/meta-data/$1"`,
		"}",
		"member() {",
		`  printf '%s\n' "$1" | sed -n 's/.*"'"$2"'" *: *"\([^"]*\)".*/\1/p'`,
		"}",
		"fetch() {",
		"  session=$(curl -sSf -m 5 --noproxy '*' -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 300' http://169.254.169.254/latest/api/token) || return 1",
		"  domain=$(metadata services/domain) || return 1",
		"  role=$(metadata iam/security-credentials/) || return 1",
		`  keys=$(metadata "iam/security-credentials/$role") || return 1`,
		`  answer=$(printf 'user = "%s:%s"\nheader = "X-Amz-Security-Token: %s"\n' \`,
		`    "$(member "$keys" AccessKeyId)" "$(member "$keys" SecretAccessKey)" "$(member "$keys" Token)" |`,
		`    curl -sSf -m 20 -K - --aws-sigv4 "aws:amz:$region:ssm" -H 'Content-Type: application/x-amz-json-1.1' -H 'X-Amz-Target: AmazonSSM.GetParameter' \`,
		`      -d '{"Name":"'"$parameter"'","WithDecryption":true}' "https://ssm.$region.$domain/") || return 1`,
		`  member "$answer" Value`,
		"}",
	}, "fetch")
}

// joinScript returns a boot script. It runs the lines of before, then fetches the parameter with the shell
// command fetch. It tries for five minutes,
// because credentials of a new instance profile work only after a while. It prints neither token nor answer.
func joinScript(before []string, fetch string) string {
	lines := []string{
		"#!/bin/sh",
		"# Fetches what this node joins its cluster with. weir keeps the parameter.",
		"set -euf",
		"parameter=" + markParameter,
		"region=" + markRegion,
	}
	lines = append(lines, before...)
	lines = append(lines,
		"tries=0",
		"until value=$("+fetch+"); do",
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
		`s|^\( *token: \)`+waitingToken+`$|\1"$token"|`,
		`s|^\( *apiServerEndpoint: \)`+waitingEndpoint+`$|\1"$server"|`,
		`s|^\( *caCertHashes: \)`+waitingCA+`$|\1[$hashes]|`,
		"EOF",
		"",
	)
	return strings.Join(lines, "\n")
}

// fill sets parameter and region in the document.
func (f *FetchedToken) fill(text string) string {
	if f == nil {
		return text
	}
	return strings.NewReplacer(markParameter, f.Parameter, markRegion, f.Region).Replace(text)
}

// wait writes the values that the script replaces to kubeadm's discovery.
func (f FetchedToken) wait(token map[string]any) {
	token["token"] = waitingToken
	if f.Endpoint {
		token["apiServerEndpoint"] = waitingEndpoint
	}
	if f.CA {
		token["caCertHashes"] = waitingCA
	}
}
