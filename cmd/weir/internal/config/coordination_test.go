package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shared is a configuration with a section coordination, from line 6 on.
func shared(section string) string {
	return "apiVersion: weir.dev/v1alpha1\nkind: Config\ninstance: a\nsources: [{name: s, url: 'https://h/o/r'}]\ntargets: [{name: t, region: eu-west-1}]\n" + section
}

func TestCoordination(t *testing.T) {
	for name, tc := range map[string]struct {
		in     string
		engine string
		want   Coordination
	}{
		"none": {"", "", Coordination{}},
		"a table": {
			"coordination: {keysFile: keys, dynamodb: {table: weir.prod_1, region: eu-west-1}}\n", "dynamodb",
			Coordination{KeysFile: "/c/keys", DynamoDB: DynamoDB{Table: "weir.prod_1", Region: "eu-west-1"}},
		},
		"keys by KMS": {
			"coordination: {kmsKeyARNs: ['arn:aws:kms:eu-west-1:123456789012:key/1'], dynamodb: {table: weir, region: eu-west-1}}\n", "dynamodb",
			Coordination{KMSKeyARNs: []string{"arn:aws:kms:eu-west-1:123456789012:key/1"}, DynamoDB: DynamoDB{Table: "weir", Region: "eu-west-1"}},
		},
		"etcd here": {
			"coordination: {keysFile: /k, etcd: {endpoints: ['http://127.0.0.1:2379', 'http://[::1]:2379', 'http://localhost:2379']}}\n", "etcd",
			Coordination{KeysFile: "/k", Etcd: Etcd{Endpoints: []string{"http://127.0.0.1:2379", "http://[::1]:2379", "http://localhost:2379"}}},
		},
		"etcd there": {
			"coordination:\n  keysFile: keys\n  etcd: {endpoints: ['https://e:2379'], certFile: c, keyFile: k, caFile: ca, usernameFile: u, passwordFile: p}\n", "etcd",
			Coordination{KeysFile: "/c/keys", Etcd: Etcd{Endpoints: []string{"https://e:2379"}, CertFile: "/c/c", KeyFile: "/c/k", CAFile: "/c/ca", UsernameFile: "/c/u", PasswordFile: "/c/p"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, faults := Parse("/c/weir.yaml", []byte(shared(tc.in)), env)
			if c == nil {
				t.Fatal(faults)
			}
			if diff := cmp.Diff(tc.want, c.Coordination); diff != "" || c.Coordination.Engine() != tc.engine || c.Several() != (tc.engine != "") {
				t.Errorf("engine %q (-want +got):\n%s", c.Coordination.Engine(), diff)
			}
			text, err := c.Shown()
			if err != nil {
				t.Fatal(err)
			}
			if again, faults := Parse("/c/weir.yaml", []byte(text), env); again == nil || !again.Coordination.Same(c.Coordination) {
				t.Errorf("what is shown says something else: %v\n%s", faults, text)
			}
		})
	}
}

func TestCoordinationFaults(t *testing.T) {
	const keys = "  keysFile: k\n"
	for name, tc := range map[string]struct {
		in   string
		want []string
	}{
		"nothing in it":    {"coordination: {}\n", []string{"w.yaml:6:15: error: coordination: an engine is required", "w.yaml:6:15: error: coordination.keysFile: a file"}},
		"no value":         {"coordination:\n", []string{"coordination: an engine is required", "coordination.keysFile: a file"}},
		"an alias of KMS":  {"coordination:\n  kmsKeyARNs: ['arn:aws:kms:eu-west-1:123456789012:alias/weir', '']\n  dynamodb: {table: weir, region: eu-west-1}\n", []string{"w.yaml:7:16: error: coordination.kmsKeyARNs[0]: ", "w.yaml:7:65: error: coordination.kmsKeyARNs[1]: the ARN"}},
		"two engines":      {"coordination:\n" + keys + "  etcd: {endpoints: ['https://e:2379']}\n  dynamodb: {table: weir, region: eu-west-1}\n", []string{"w.yaml:7:3: error: coordination: dynamodb and etcd are both set"}},
		"an empty table":   {"coordination:\n" + keys + "  dynamodb: {}\n", []string{"w.yaml:8:13: error: coordination.dynamodb.region: the table's region", "w.yaml:8:13: error: coordination.dynamodb.table: the table's name"}},
		"a table of null":  {"coordination:\n" + keys + "  dynamodb:\n", []string{"dynamodb.region", "dynamodb.table"}},
		"an ARN":           {"coordination:\n" + keys + "  dynamodb: {table: 'arn:aws:dynamodb:eu-west-1:1:table/weir', region: here}\n", []string{`w.yaml:8:21: error: coordination.dynamodb.table: "arn:`, `w.yaml:8:72: error: coordination.dynamodb.region: "here" does not`}},
		"plain DynamoDB":   {"coordination:\n" + keys + "  dynamodb: {table: weir, region: eu-west-1, endpointURL: 'http://db:8000'}\n", []string{"endpointURL: db:8000 is on another machine"}},
		"no endpoint":      {"coordination:\n" + keys + "  dynamodb: {table: weir, region: eu-west-1, endpointURL: db}\n", []string{`"db" is not an http(s) URL`}},
		"no etcd":          {"coordination:\n" + keys + "  etcd: {caFile: ca}\n", []string{"w.yaml:8:9: error: coordination.etcd.endpoints: the addresses"}},
		"plain etcd":       {"coordination:\n" + keys + "  etcd: {endpoints: ['http://10.0.0.1:2379']}\n", []string{"w.yaml:8:22: error: coordination.etcd.endpoints[0]: 10.0.0.1:2379 is on another machine"}},
		"endpoints":        {"coordination:\n" + keys + "  etcd: {endpoints: [e:2379, 'https://e', 'https://u:hunter2@e:1', 'https://e:1/x', 'https://e:2', 'https://e:2']}\n", []string{`"e:2379" is no`, `"https://e" is no`, `"…@e:1" is no`, `"https://e:1/x" is no`, "there twice"}},
		"half of pairs":    {"coordination:\n" + keys + "  etcd: {endpoints: ['https://e:1'], certFile: c, passwordFile: p}\n", []string{"certFile and keyFile", "usernameFile and passwordFile"}},
		"TLS without TLS":  {"coordination:\n" + keys + "  etcd: {endpoints: ['http://127.0.0.1:1'], caFile: c}\n", []string{"are for https"}},
		"unknown keys":     {"coordination:\n" + keys + "  etcd: {endpoints: ['https://e:1'], user: u}\n  consul: {}\n", []string{"w.yaml:8:38: error: unknown key coordination.etcd.user", "w.yaml:9:3: error: unknown key coordination.consul"}},
		"AWS of its own":   {"aws: {endpoint: embedded}\ncoordination:\n" + keys + "  dynamodb: {table: weir, region: eu-west-1}\n", []string{"w.yaml:6:17: error: aws.endpoint: several daemons may run"}},
		"without instance": {"coordination:\n" + keys + "  dynamodb: {table: weir, region: eu-west-1}\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := shared(tc.in)
			if name == "without instance" {
				in, tc.want = strings.Replace(in, "instance: a\n", "", 1), []string{"instance: a name for this instance is required"}
			}
			c, faults := Parse("w.yaml", []byte(in), env)
			var text strings.Builder
			for _, f := range faults {
				text.WriteString(f.String() + "\n")
			}
			for _, want := range tc.want {
				if !strings.Contains(text.String(), want) {
					t.Errorf("want %q in\n%s", want, text.String())
				}
			}
			if c != nil || len(faults) != len(tc.want) || strings.Contains(text.String(), "hunter2") {
				t.Errorf("want %d faults, got\n%s", len(tc.want), text.String())
			}
		})
	}
}

// A daemon cannot start without the files of its engine, and says at which line they are.
func TestCoordinationNeedsItsFiles(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "weir.yaml")
	const key = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n"
	in := shared("coordination:\n  keysFile: keys\n  etcd:\n    endpoints: ['https://e:1']\n    caFile: ca\n")
	for name, tc := range map[string]struct {
		files map[string]string
		want  []string
		fatal bool
	}{
		"there":      {map[string]string{"keys": key, "ca": ""}, nil, false},
		"not there":  {nil, []string{file + ":7:13: error: coordination.keysFile: ", file + ":10:13: error: coordination.etcd.caFile: "}, true},
		"no key":     {map[string]string{"keys": "short", "ca": ""}, []string{":7:13: error: coordination.keysFile: line 1 of " + filepath.Join(dir, "keys") + " does not hold 32 bytes"}, true},
		"world-read": {map[string]string{"keys": key, "ca": "", "open": ""}, []string{":7:13: warning: coordination.keysFile: "}, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, open := tc.files["open"]
			for _, f := range []string{"keys", "ca"} {
				_ = os.Remove(filepath.Join(dir, f)) // of the case before
				if content, ok := tc.files[f]; ok {
					write(t, filepath.Join(dir, f), content)
					if open {
						if err := os.Chmod(filepath.Join(dir, f), 0o644); err != nil { //nolint:gosec // that is the fault
							t.Fatal(err)
						}
					}
				}
			}
			c, faults := Parse(file, []byte(in), Env{Getenv: env.Getenv, Files: true})
			if (c == nil) != tc.fatal || len(faults) != len(tc.want) {
				t.Errorf("got %v", faults)
			}
			for i := range min(len(faults), len(tc.want)) {
				if !strings.Contains(faults[i].String(), tc.want[i]) {
					t.Errorf("want %q, got %s", tc.want[i], faults[i])
				}
			}
			if c, faults := Parse(file, []byte(in), env); c == nil {
				t.Errorf("a command that reads no file refuses it: %v", faults)
			}
		})
	}
}
