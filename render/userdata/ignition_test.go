package userdata_test

import (
	"encoding/json"
	"strings"
	"testing"

	ignition "github.com/flatcar/ignition/config/v2_3"
	"github.com/google/go-cmp/cmp"
	"github.com/vincent-petithory/dataurl"
	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/render/userdata"
)

// document is what tests look at in an Ignition document of any version.
type document struct {
	Ignition struct{ Version string }
	Storage  struct {
		Files []struct {
			Path     string
			Contents struct{ Source string }
			Append   any
			Mode     int
			User     struct{ Name string }
		}
	}
	Systemd struct {
		Units []struct {
			Name, Contents string
			Dropins        []struct{ Name string }
		}
	}
}

func (d document) content(t interface{ Fatalf(string, ...any) }, path string) string {
	for _, f := range d.Storage.Files {
		if f.Path == path {
			u, err := dataurl.DecodeString(f.Contents.Source)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			return string(u.Data)
		}
	}
	t.Fatalf("there is no file %s", path)
	return ""
}

func ignitionOf(t interface{ Fatalf(string, ...any) }, k userdata.Kubeadm, o userdata.Ignition) document {
	text, problems := k.Ignition(o)
	if text == "" {
		t.Fatalf("no document: %v", problems)
	}
	var d document
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return d
}

// TestIgnitionIsValid gives any texts to the writer, and what it writes to the
// parser and validator of Ignition 2.3.
func TestIgnitionIsValid(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		content, command, gecos := anyText().Draw(rt, "content"), anyText().Draw(rt, "command"), anyText().Draw(rt, "gecos")
		token := rapid.StringMatching(`[ -~]{0,20}`).Draw(rt, "token")
		sudo, locked := "ALL", rapid.Bool().Draw(rt, "locked")
		in := userdata.Kubeadm{
			CloudInit: userdata.CloudInit{
				Files:  []userdata.File{{Path: "/a", Content: content, Owner: "root:wheel", Permissions: "0600"}, {Path: "/b", Content: content, Append: true}},
				Users:  []userdata.User{{Name: "ops", Gecos: &gecos, Sudo: &sudo, LockPassword: &locked, SSHAuthorizedKeys: []string{command}}},
				Mounts: [][]string{{"/dev/x", "/mnt/" + rapid.StringMatching(`[a-z/-]{1,9}`).Draw(rt, "mount"), "noatime"}},
			},
			PreCommands: []string{command}, Join: userdata.Join{Minor: 31, Token: token, NodeName: token},
		}
		for _, version := range []string{"2.3", "3.0", "3.4"} {
			d := ignitionOf(rt, in, userdata.Ignition{Version: version})
			if d.Ignition.Version != version+".0" || d.content(rt, "/a") != content || !strings.Contains(d.content(rt, "/etc/kubeadm.sh"), command) {
				rt.Fatalf("version %s came back as %+v", version, d)
			}
		}
		text, _ := in.Ignition(userdata.Ignition{})
		if again, _ := in.Ignition(userdata.Ignition{}); again != text {
			rt.Fatal("two documents differ")
		}
		_, report, err := ignition.Parse([]byte(text))
		if err != nil || report.IsFatal() {
			rt.Fatalf("%v %s in\n%s", err, report, text)
		}
	})
}

// TestIgnitionVersion3HasNoRepetition merges what version 2 lets come again.
func TestIgnitionVersion3HasNoRepetition(t *testing.T) {
	const more = `
storage:
  files:
  - {path: /etc/kubeadm.sh, filesystem: root, mode: 0700, contents: {inline: mine}}
  - {path: /etc/kubeadm.sh, filesystem: root, mode: 0700, append: true, contents: {inline: more}}
  - {path: /x, filesystem: data, mode: 0644, contents: {inline: x}}
  filesystems:
  - {name: data, path: /var/data}
systemd:
  units:
  - {name: kubeadm.service, dropins: [{name: 1.conf, contents: "[Unit]\nAfter=x.service\n"}]}
  - {name: kubeadm.service, dropins: [{name: 2.conf, contents: "[Unit]\nAfter=y.service\n"}]}
`
	d := ignitionOf(t, userdata.Kubeadm{Join: userdata.Join{Minor: 31}}, userdata.Ignition{Version: "3.1", AdditionalConfig: more, Strict: true})
	var paths []string
	for _, f := range d.Storage.Files {
		paths = append(paths, f.Path)
	}
	if diff := cmp.Diff([]string{"/etc/kubeadm.sh", "/etc/kubeadm.yml", "/var/data/x"}, paths); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := d.content(t, "/etc/kubeadm.sh"); got != "mine" || d.Storage.Files[0].Append == nil {
		t.Errorf("the script is %q", got)
	}
	if u := d.Systemd.Units; len(u) != 1 || len(u[0].Dropins) != 2 || u[0].Contents == "" {
		t.Errorf("units %+v", u)
	}
}

// TestContainerLinuxConfig shows how flaws of the additional configuration are
// told, and that no value of it is.
func TestContainerLinuxConfig(t *testing.T) {
	tests := map[string]struct {
		config  string
		strict  bool
		version string
		// failed says that nothing is written; message is in the first problem.
		failed  bool
		message string
	}{
		"sound":                   {config: "systemd: {units: [{name: a.service, enabled: true, contents: \"[Install]\\nWantedBy=multi-user.target\"}]}", strict: true},
		"a warning":               {config: "storage: {files: [{path: /a, filesystem: root, contents: {inline: secret}}]}", message: "line 1: mode unspecified"},
		"a warning, strictly":     {config: "storage: {files: [{path: /a, filesystem: root, contents: {inline: secret}}]}", strict: true, failed: true, message: "line 1: mode unspecified"},
		"no YAML":                 {config: "a: [secret", failed: true, message: "did not find"},
		"wrong type":              {config: "storage: {files: secret}", failed: true, message: "cannot unmarshal"},
		"unknown key":             {config: "storage: {file: []}", message: "unrecognized key"},
		"a file of this host":     {config: "storage: {files: [{path: /a, filesystem: root, mode: 0600, contents: {local: etc/passwd}}]}", failed: true, message: "files-dir"},
		"data of the instance":    {config: "etcd: {version: 3.0.1, listen_client_urls: \"http://{PRIVATE_IPV4}:2379\"}", failed: true, message: "platform"},
		"an alias":                {config: "x: &x {remote: {url: 'http://x'}}\nstorage: {files: [{path: /a, mode: 0644, filesystem: root, contents: *x}]}", failed: true, message: "without aliases"},
		"too long":                {config: strings.Repeat("#", 65536), failed: true, message: "65535 are allowed"},
		"MiB in version 3":        {config: "storage: {disks: [{device: /dev/x, partitions: [{number: 1, size: 4GiB, start: 1MiB}]}]}", version: "3.0"},
		"a user twice, version 3": {config: "passwd: {users: [{name: a}, {name: a}]}", version: "3.0", failed: true, message: "twice"},
		"no place in version 3":   {config: "storage: {filesystems: [{name: d, mount: {device: /dev/x, format: ext4}}], files: [{path: /a, filesystem: d, mode: 0644}]}", version: "3.0", failed: true, message: "has no path"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			text, problems := userdata.Kubeadm{Join: userdata.Join{Minor: 31}}.Ignition(userdata.Ignition{AdditionalConfig: tt.config, Strict: tt.strict, Version: tt.version})
			if (text == "") != tt.failed {
				t.Errorf("written: %v, problems %v", text != "", problems)
			}
			if tt.message == "" != (len(problems) == 0) {
				t.Fatalf("problems %v, want %q", problems, tt.message)
			}
			for _, p := range problems {
				if strings.Contains(p.Message, "secret") {
					t.Errorf("a value is in %q", p.Message)
				}
			}
			if tt.message != "" && !strings.Contains(problems[0].Message, tt.message) {
				t.Errorf("problem %q, want %q", problems[0].Message, tt.message)
			}
		})
	}
}

func TestDetect(t *testing.T) {
	for text, want := range map[string]string{
		"MIME-Version: 1.0\n":                       "mime",
		"Content-Type: multipart/mixed; boundary=x": "mime",
		"#!/bin/sh\n":                               "shell",
		"<powershell>":                              "powershell",
		`{"ignition":{"version":"2.3.0"}}`:          "ignition",
		"#cloud-config\n":                           "cloud-config",
		"## template: jinja\n#cloud-config\n":       "cloud-config",
		"":                                          "cloud-config", "{": "cloud-config", `{"a":1}`: "cloud-config",
	} {
		if got := userdata.Detect(text); got != want {
			t.Errorf("Detect(%q) = %s, want %s", text, got, want)
		}
	}
}

// FuzzContainerLinuxConfig feeds the transpiler, which was not made for input of
// strangers.
func FuzzContainerLinuxConfig(f *testing.F) {
	for _, s := range []string{"storage: {files: [{path: /a, mode: 0644}]}", "x: &x [*x]", "etcd: {version: 3.1.0}", "flannel: {}", "docker: {}", "locksmith: {}", "update: {group: stable}", "networkd: {units: [{name: a}]}", "storage: {raid: [{name: a, devices: [b]}]}", "a: {<<: {b: c}}", "- a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, config string) {
		for _, version := range []string{"2.3", "3.4"} {
			text, problems := userdata.Kubeadm{Join: userdata.Join{Minor: 31}}.Ignition(userdata.Ignition{AdditionalConfig: config, Version: version})
			if text == "" && len(problems) == 0 {
				t.Error("neither a document nor a problem")
			}
		}
	})
}
