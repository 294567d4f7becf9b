package config

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/weir-gitops/weir/render/schema"
	"github.com/weir-gitops/weir/render/schema/comments"
)

var update = flag.Bool("update", false, "write descriptions.txt anew")

// everyKey is a configuration with every key that the schema says something of.
const everyKey = `
apiVersion: weir.dev/v1alpha1
kind: Config
instance: prod
stateDir: /var/lib/weir
listen: 127.0.0.1:8344
publicURL: https://weir.example.com
tls: {certFile: cert.pem, keyFile: key.pem}
access:
  anonymous: none
  tokens:
  - {name: ops, role: operate, file: ops-token}
  - {name: prometheus, role: metrics, file: metrics-token}
  proxy: {addresses: [10.0.0.0/16, "::1"], userHeader: X-Auth-Request-User, groupsHeader: X-Auth-Request-Groups, secretFile: proxy-secret, secretHeader: X-Secret}
  rules: [{groups: [sre], users: [ann@example.com], role: operate}, {users: ["*"], role: read}]
interval: 1m30s
aws: {endpoint: http://127.0.0.1:8345}
coordination:
  dynamodb: {table: weir-prod, region: eu-west-1, endpointURL: http://127.0.0.1:8345}
  keysFile: keys
sources:
- name: fleet
  url: https://git.example.com/platform/fleet.git
  ref: {branch: main}
  interval: 10s
  auth: {tokenFile: token}
  caFile: ca.pem
  clientCert: {certFile: client.pem, keyFile: client.key}
  proxy: http://proxy:3128
  proxyAuth: {username: weir, passwordFile: proxy-password}
- name: signed
  url: git@git.example.com:platform/fleet.git
  ref: {semver: ">=1.2.0 <2.0.0"}
  auth: {sshKeyFile: key, passphraseFile: passphrase, knownHostsFile: known_hosts}
  verify: {mode: either, pgp: {keyFiles: [release.asc]}, ssh: {allowedSignersFile: allowed_signers}}
- name: app
  url: https://github.com/acme/fleet
  ref: {name: refs/pull/1/head}
  auth: {githubApp: {appID: 4711, installationID: 12, privateKeyFile: app.pem}}
- name: bearer
  url: https://git.example.com/platform/other.git
  auth: {bearerTokenFile: token}
- name: basic
  url: https://git.example.com/platform/third.git
  ref: {tag: v1}
  auth: {username: weir, passwordFile: password}
- name: pinned
  url: https://git.example.com/platform/fourth.git
  ref: {commit: 0123456789abcdef0123456789abcdef01234567}
limits: {targets: 4000, pools: 10000, nodes: 300000}
forges:
- type: gitea
  url: https://git.example.com/platform/fleet
  source: fleet
  tokenFile: token
  webhookSecretFile: webhook-secret
  pullRequests: {plan: always, drafts: wait, forecast: never, forks: {allowBy: [comment, label], label: plan it}}
- type: generic
  source: signed
  webhookSecretFile: webhook-secret
notify:
- url: https://hooks.example.com/weir?channel=fleet
  secretFile: notify-secret
  events: [drift-found, refresh-failed]
targets:
- name: "{1}"
  source: fleet
  path: overlays/*
  region: eu-west-1
  accountID: "123456789012"
  roleARN: arn:aws:iam::123456789012:role/weir
  planRoleARN: arn:aws:iam::123456789012:role/weir-plan
  allowedRoleARNs: ["arn:aws:iam::123456789012:role/fleet"]
  endpointURL: http://127.0.0.1:8345
  network: {vpcID: vpc-00000001, subnetIDs: [subnet-00000001], securityGroupIDs: [sg-00000001]}
  vars: {REGION: eu-west-1, COUNT: 3, ON: true}
  varsFrom: [{file: values.yaml}]
  mode: correct
  prune: {enabled: true, limit: 20%}
  apply: as-reviewed
  dependsOn: [canary, "{1}-*", "*"]
  windows: [{kind: allow, days: [mon, fri], start: "09:00", end: "24:00", timezone: Europe/Berlin}, {kind: deny, duration: 48h}]
  maxConcurrentRollouts: 2
  suspend: false
- name: "{1}-{2}"
  source: signed
  path: "*/clusters/*"
  key: "{1}/{2}"
  kubeconfigFile: kube/{1}/{2}.yaml
  varsFrom: [{file: "values/{2}.env"}, {path: values.env}, {path: "../{2}.yaml"}]
  table:
    dev/eu: {region: eu-central-1, accountID: "111111111111", roleARN: "arn:aws:iam::111111111111:role/weir", planRoleARN: "arn:aws:iam::111111111111:role/plan", vars: {SIZE: small, NAME: "{2}"}}
    prod/eu: {region: eu-central-2, allowedRoleARNs: ["arn:aws:iam::222222222222:role/x"], endpointURL: "http://127.0.0.1:1", network: {vpcID: vpc-00000002}, kmsKeyARNs: ["arn:aws:kms:eu-central-2:222222222222:key/k"], kubeconfigFile: prod}
    prod/us: {region: us-east-1}
`

func schemaOf(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := schema.Marshal(Schema())
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("config.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("config.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func validates(t *testing.T, s *jsonschema.Schema, text string) error {
	t.Helper()
	data, err := sigsyaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(doc)
}

func TestSchemaAndParseAgree(t *testing.T) {
	s := schemaOf(t)
	tests := map[string]struct {
		from, to string
		valid    bool
	}{
		"as it is":                      {valid: true},
		"an unknown key":                {from: "instance: prod", to: "instance: prod\ninstances: a"},
		"an unknown key below":          {from: "vpcID", to: "vpcId"},
		"no instance":                   {from: "instance: prod\n"},
		"no apiVersion":                 {from: "apiVersion: weir.dev/v1alpha1\n"},
		"another apiVersion":            {from: "v1alpha1", to: "v1"},
		"no kind":                       {from: "kind: Config\n"},
		"another kind":                  {from: "kind: Config", to: "kind: config"},
		"a source without name":         {from: "- name: fleet\n  url", to: "- url"},
		"a source without url":          {from: "  url: https://git.example.com/platform/fleet.git\n"},
		"a forge without type":          {from: "- type: gitea\n  url", to: "- url"},
		"a forge without url":           {from: "  url: https://git.example.com/platform/fleet\n"},
		"a forge without token":         {from: "  source: fleet\n  tokenFile: token\n", to: "  source: fleet\n"},
		"a verify mode":                 {from: "mode: either", to: "mode: both"},
		"gitlab":                        {from: "gitea", to: "gitlab", valid: true},
		"generic with token":            {from: "- type: generic\n", to: "- type: generic\n  tokenFile: token\n"},
		"generic without secret":        {from: "  source: signed\n  webhookSecretFile: webhook-secret\n", to: "  source: signed\n"},
		"a notification without secret": {from: "  secretFile: notify-secret\n"},
		"a notification without url":    {from: "- url: https://hooks.example.com/weir?channel=fleet\n  secretFile", to: "- secretFile"},
		"another event":                 {from: "drift-found", to: "drift-lost"},
		"another forge":                 {from: "gitea", to: "cvs"},
		"forgejo":                       {from: "gitea", to: "forgejo", valid: true},
		"github":                        {from: "gitea", to: "github", valid: true},
		"a target without name":         {from: "- name: \"{1}\"\n  source", to: "- source"},
		"no region":                     {from: "  region: eu-west-1\n"},
		"no region in a row":            {from: "prod/us: {region: us-east-1}", to: "prod/us: {}"},
		"an unknown key in a row":       {from: "{region: us-east-1}", to: "{region: us-east-1, prune: {}}"},
		"a row's region":                {from: "region: us-east-1", to: "region: Virginia"},
		"a row's role":                  {from: "\"arn:aws:iam::111111111111:role/plan\"", to: "plan"},
		"a row's account":               {from: "accountID: \"111111111111\"", to: "accountID: dev"},
		"another account's role":        {from: "accountID: \"111111111111\"", to: "accountID: \"333333333333\""},
		"a row's variable":              {from: "SIZE: small", to: "SIZE-1: small"},
		"a placeholder beyond the path": {from: "NAME: \"{2}\"", to: "NAME: \"{3}\""},
		"a key without placeholder":     {from: "key: \"{1}/{2}\"", to: "key: dev/eu"},
		"no key":                        {from: "  key: \"{1}/{2}\"\n", valid: true},
		"a key without table":           {from: "  maxConcurrentRollouts: 2\n", to: "  key: \"{1}\"\n"},
		"a list for a table":            {from: "  table:\n", to: "  table: []\n  windows:\n"},
		"a text for a row":              {from: "{region: us-east-1}", to: "us-east-1"},
		"no such region":                {from: "region: eu-west-1", to: "region: Ireland"},
		"another mode":                  {from: "mode: correct", to: "mode: wrong"},
		"report":                        {from: "mode: correct", to: "mode: report", valid: true},
		"no file":                       {from: "{file: values.yaml}", to: "{}"},
		"a path that leaves the source": {from: "../{2}.yaml", to: "../../../../x.yaml"},
		"a path in full":                {from: "../{2}.yaml", to: "/etc/x.yaml"},
		"a secret path":                 {from: "{path: values.env}", to: "{path: values.env, secret: true}"},
		"a path and a file":             {from: "{path: values.env}", to: "{path: values.env, file: values.env}"},
		"a path's placeholder":          {from: "../{2}.yaml", to: "../{3}.yaml"},
		"an account":                    {from: `"123456789012"`, to: `"12345"`},
		"an account in digits":          {from: `"123456789012"`, to: "123456789012", valid: true},
		"an empty account":              {from: `"123456789012"`, to: `""`, valid: true},
		"a role":                        {from: "arn:aws:iam::123456789012:role/weir", to: "weir"},
		"an allowed role":               {from: "arn:aws:iam::123456789012:role/fleet", to: "fleet"},
		"an instance's name":            {from: "instance: prod", to: "instance: Prod"},
		"a source's name":               {from: "- name: fleet", to: "- name: _"},
		"a target's name":               {from: `"{1}"`, to: `"{1} x"`},
		"a duration":                    {from: "1m30s", to: "soon"},
		"a duration without":            {from: "1m30s", to: "90"},
		"no interval":                   {from: "1m30s", to: "0", valid: true},
		"a share above 100":             {from: "20%", to: "200%", valid: false},
		"a count":                       {from: "20%", to: "3", valid: true},
		"nothing of the pools":          {from: "20%", to: "0"},
		"a table's name":                {from: "weir-prod", to: "weir/prod"},
		"no table":                      {from: "table: weir-prod, ", to: ""},
		"a table's region":              {from: "weir-prod, region: eu-west-1", to: "weir-prod, region: Ireland"},
		"no engine":                     {from: "  dynamodb: {table: weir-prod, region: eu-west-1, endpointURL: http://127.0.0.1:8345}\n"},
		"no keys":                       {from: "  keysFile: keys\n"},
		"keys by KMS":                   {from: "  keysFile: keys\n", to: "  kmsKeyARNs: [\"arn:aws:kms:eu-west-1:123456789012:key/mrk-0a1b\"]\n", valid: true},
		"keys by an alias":              {from: "  keysFile: keys\n", to: "  kmsKeyARNs: [\"arn:aws:kms:eu-west-1:123456789012:alias/weir\"]\n"},
		"an engine of nothing":          {from: "{table: weir-prod, region: eu-west-1, endpointURL: http://127.0.0.1:8345}"},
		"etcd":                          {from: "dynamodb: {table: weir-prod, region: eu-west-1, endpointURL: http://127.0.0.1:8345}", to: "etcd: {endpoints: [\"https://etcd-0:2379\"], certFile: c, keyFile: k, caFile: ca, usernameFile: u, passwordFile: p}", valid: true},
		"etcd without endpoints":        {from: "dynamodb: {table: weir-prod, region: eu-west-1, endpointURL: http://127.0.0.1:8345}", to: "etcd: {caFile: ca}"},
		"two engines":                   {from: "  keysFile: keys", to: "  etcd: {endpoints: [\"https://etcd-0:2379\"]}\n  keysFile: keys"},
		"text for a boolean":            {from: "suspend: false", to: "suspend: maybe"},
		"a list for a mapping":          {from: "aws: {endpoint: http://127.0.0.1:8345}", to: "aws: []"},
		"a mapping for a list":          {from: "varsFrom: [{file: values.yaml}]", to: "varsFrom: {file: values.yaml}"},
		"null":                          {from: "caFile: ca.pem", to: "caFile:", valid: true},
		"null for a mapping":            {from: "aws: {endpoint: http://127.0.0.1:8345}", to: "aws:", valid: true},
		"a variable's name":             {from: "COUNT: 3", to: "COUNT-A: 3"},
		"a list for a variable":         {from: "COUNT: 3", to: "COUNT: [3]"},
		"a number for a text":           {from: "branch: main", to: "branch: 1.5", valid: true},
		"a mapping for a text":          {from: "branch: main", to: "branch: {}"},
		"another apply":                 {from: "as-reviewed", to: "reviewed"},
		"another window":                {from: "kind: deny", to: "kind: never"},
		"another day":                   {from: "[mon, fri]", to: "[monday]"},
		"a time of day":                 {from: `"09:00"`, to: `"9"`},
		"a time beyond the day":         {from: `"24:00"`, to: `"24:01"`},
		"a limit of none":               {from: "pools: 10000", to: "pools: 0"},
		"a limit in words":              {from: "pools: 10000", to: "pools: many"},
		"an unknown limit":              {from: "pools: 10000", to: "clusters: 3"},
		"rollouts of none":              {from: "Rollouts: 2", to: "Rollouts: 0"},
		"rollouts in words":             {from: "Rollouts: 2", to: "Rollouts: two"},
		"a dependency's name":           {from: `"{1}-*"`, to: `"-"`},
		"anonymous may write":           {from: "anonymous: none", to: "anonymous: operate"},
		"behind a proxy":                {from: "tls: {certFile: cert.pem, keyFile: key.pem}\naccess:\n", to: "access:\n  withoutTLS: behind-proxy\n", valid: true},
		"without TLS for no reason":     {from: "tls: {certFile: cert.pem, keyFile: key.pem}\naccess:\n", to: "access:\n  withoutTLS: true\n"},
		"a token without role":          {from: "{name: ops, role: operate, file", to: "{name: ops, file"},
		"a token without name":          {from: "{name: ops, role", to: "{role"},
		"a token without file":          {from: ", file: ops-token", to: ""},
		"another role":                  {from: "role: metrics", to: "role: admin"},
		"a rule without role":           {from: `{users: ["*"], role: read}`, to: `{users: ["*"]}`},
		"a header of others":            {from: "X-Secret", to: "Authorization"},
		"two of one reference":          {from: "branch: main", to: "branch: main, brunch: a"},
	}
	lenient := map[string]bool{"two engines": true, "a path that leaves the source": true, "a path in full": true, "a secret path": true, "a path and a file": true, "a path's placeholder": true, "no region in a row": true, "another account's role": true, "a placeholder beyond the path": true, "a key without placeholder": true, "a key without table": true, "a share above 100": true, "a forge without token": true, "a forge without url": true, "generic with token": true, "generic without secret": true} // what the schema does not say
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(everyKey, tt.from, tt.to, 1)
			c, faults := Parse("weir.yaml", []byte(text), Env{Getenv: os.Getenv})
			if (c != nil) != tt.valid {
				t.Errorf("Parse says %v", faults)
			}
			if err := validates(t, s, text); (err == nil) != (tt.valid || lenient[name]) {
				t.Errorf("the schema says %v", err)
			}
		})
	}
}

// TestSchemaTablesNameRealKeys finds each place of the tables in the types.
func TestSchemaTablesNameRealKeys(t *testing.T) {
	paths := slices.Collect(maps.Keys(rules))
	for at, sets := range oneOf {
		for _, k := range slices.Concat(sets...) {
			paths = append(paths, join(at, k))
		}
	}
	for _, at := range paths {
		n := Schema()
		for e := range strings.SplitSeq(strings.ReplaceAll(at, "[]", ".[]"), ".") {
			var next any
			if e == "[]" {
				if next = n["items"]; next == nil {
					next = n["additionalProperties"]
				}
			} else if props, ok := n["properties"].(schema.Node); ok {
				next = props[e]
			}
			var ok bool
			if n, ok = next.(schema.Node); !ok {
				t.Fatalf("%s: there is no %s", at, e)
			}
		}
	}
}

// TestSchemaDefaults checks that the defaults it tells are those that are filled.
func TestSchemaDefaults(t *testing.T) {
	parse := func(extra, more string) *Config {
		text := "apiVersion: weir.dev/v1alpha1\nkind: Config\ninstance: a\nstateDir: /s\n" + extra + "sources: [{name: s, url: \"https://x/y\"}]\ntargets: [{name: t, region: eu-west-1" + more + "}]\n"
		c, faults := Parse("weir.yaml", []byte(text), Env{Getenv: os.Getenv})
		if c == nil {
			t.Fatal(faults)
		}
		return c
	}
	left, written := parse("", ""), parse("listen: 127.0.0.1:8344\ninterval: 1m\n", ", path: ., mode: correct, prune: {limit: 20%}")
	written.Sources[0].Interval = defaultSourceInterval
	if l, w := left.Targets[0], written.Targets[0]; left.Listen != written.Listen || left.Interval != written.Interval || l.Path != w.Path || l.Mode != w.Mode || l.Prune != w.Prune {
		t.Errorf("%+v and %+v", l, w)
	}
}

// TestDescriptions keeps the descriptions in the schema the same as the comments.
func TestDescriptions(t *testing.T) {
	want, err := comments.Table("yaml", ".", "../../../../reconciler/targetspec", "../../../../status/access", "../../../../status/pulls", "../../../../source", "../../../../source/transport", "../../../../source/signature")
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("descriptions.txt", []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if descriptionsText != want {
		t.Error("descriptions.txt is not what the comments say: run go test ./cmd/weir/internal/config -run TestDescriptions -update")
	}
	n := Schema()["properties"].(schema.Node)["instance"].(schema.Node)
	if text, _ := n["description"].(string); !strings.HasPrefix(text, "instance names this weir") {
		t.Errorf("instance is described by %q", text)
	}
}
