package userdata

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func drawCloudInit(t *rapid.T) CloudInit {
	text := rapid.SampledFrom([]string{"", "a", "a\n", "a\nb", "a\n\nb\n", "x: y", "  lead", "é ${X} 'q' \"d\"", "true", "0644", "a\n\n", "#c"})
	word := rapid.SampledFrom([]string{"/etc/a", "root:root", "name", "0644", "yes"})
	yes := rapid.SampledFrom([]*bool{nil, new(bool)})
	var c CloudInit
	for range rapid.IntRange(0, 2).Draw(t, "files") {
		c.Files = append(c.Files, File{Path: word.Draw(t, "path"), Owner: rapid.SampledFrom([]string{"", "root:root"}).Draw(t, "owner"), Permissions: rapid.SampledFrom([]string{"", "0644"}).Draw(t, "mode"), Append: rapid.Bool().Draw(t, "append"), Content: text.Draw(t, "content")})
	}
	for range rapid.IntRange(0, 2).Draw(t, "users") {
		shell := word.Draw(t, "shell")
		c.Users = append(c.Users, User{Name: word.Draw(t, "name"), Shell: &shell, LockPassword: yes.Draw(t, "lock"), SSHAuthorizedKeys: rapid.SliceOfN(word, 0, 2).Draw(t, "keys")})
	}
	if rapid.Bool().Draw(t, "ntp") {
		c.NTP = &NTP{Servers: []string{"a", "b"}, Enabled: yes.Draw(t, "enabled")}
	}
	return c
}

// TestReadGivesTheSameBytes: what is read gives back what was read, and whatever weir
// writes of settings alone is read.
func TestReadGivesTheSameBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		command := rapid.SampledFrom([]string{"echo a", "echo 'a b'", "/usr/bin/x y --z w", "a: b", "é"})
		args := rapid.MapOfN(rapid.SampledFrom([]string{"node-labels", "max-pods", "v"}), rapid.SampledFrom([]string{"a=b,c=d", "1", "x y"}), 0, 3)
		e := EKS{CloudInit: drawCloudInit(t), ClusterName: rapid.SampledFrom([]string{"prod", "a b", "default_prod-control-plane"}).Draw(t, "cluster"),
			KubeletExtraArgs: args.Draw(t, "args"), ContainerRuntime: rapid.SampledFrom([]string{"", "containerd"}).Draw(t, "runtime"),
			DNSClusterIP: rapid.SampledFrom([]string{"", "10.0.0.10"}).Draw(t, "dns"),
			PreCommands:  rapid.SliceOfN(command, 0, 2).Draw(t, "before"), PostCommands: rapid.SliceOfN(command, 0, 2).Draw(t, "after"),
			Command: rapid.SampledFrom([]string{"", "/opt/join"}).Draw(t, "command")}
		text := e.Text()
		if got, ok := ReadEKS(text); ok && got.Text() != text || !ok && !e.FreeText() {
			t.Fatalf("read %t of\n%s", ok, text)
		}
		n := Nodeadm{CloudInit: drawCloudInit(t), ClusterName: "prod", APIServerEndpoint: "https://A.eks", CertificateAuthority: "YQ==", ServiceCIDR: "10.100.0.0/16",
			KubeletFlags: rapid.SliceOfN(rapid.SampledFrom([]string{"--node-labels=a=b", "--v=\"2\""}), 0, 2).Draw(t, "flags"),
			FeatureGates: rapid.MapOfN(rapid.SampledFrom([]string{"A", "B"}), rapid.Bool(), 0, 2).Draw(t, "gates"), PreCommands: rapid.SliceOfN(command, 0, 2).Draw(t, "commands"),
			KubeletConfig:    rapid.SampledFrom([]any{nil, map[string]any{"maxPods": 20, "evictionHard": map[string]any{"memory.available": "100Mi"}, "list": []any{"a", true}}}).Draw(t, "config"),
			ContainerdConfig: rapid.SampledFrom([]string{"", "[a]\nb = 1", "[a]\n"}).Draw(t, "containerd")}
		text, err := n.Text()
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := ReadNodeadm(text); ok {
			if again, err := got.Text(); err != nil || again != text {
				t.Fatalf("read as\n%s\nof\n%s", again, text)
			}
		} else if !n.FreeText() {
			t.Fatalf("not read:\n%s", text)
		}
	})
}

// TestReadTakesNothingElse: other ways to write the same are not taken, as they would not
// come back.
func TestReadTakesNothingElse(t *testing.T) {
	eks := EKS{ClusterName: "prod", KubeletExtraArgs: map[string]string{"a": "b"}}.Text()
	nodeadm, _ := Nodeadm{ClusterName: "prod", APIServerEndpoint: "e", CertificateAuthority: "c", ServiceCIDR: "d"}.Text()
	for name, text := range map[string]string{
		"nothing": "", "a script": "#!/bin/bash\n/etc/eks/bootstrap.sh prod\n", "a comment": strings.Replace(eks, "runcmd", "# a\nruncmd", 1),
		"more": eks + "packages: [a]\n", "an option": strings.Replace(eks, "--kubelet", "--b64-cluster-ca x --kubelet", 1),
		"a boundary": strings.ReplaceAll(nodeadm, "//", "BOUNDARY"), "a kind": strings.Replace(nodeadm, "NodeConfig", "Node", 1), "cut": nodeadm[:len(nodeadm)-1],
	} {
		if _, ok := ReadEKS(text); ok {
			t.Errorf("%s is read as that of an EKSConfig", name)
		}
		if _, ok := ReadNodeadm(text); ok {
			t.Errorf("%s is read as that of a NodeadmConfig", name)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("#cloud-config\nruncmd:\n  - /etc/eks/bootstrap.sh a --kubelet-extra-args '--a=b'\n")
	f.Fuzz(func(t *testing.T, text string) {
		if e, ok := ReadEKS(text); ok && e.Text() != text {
			t.Errorf("%q", text)
		}
		if n, ok := ReadNodeadm(text); ok {
			if again, err := n.Text(); err != nil || again != text {
				t.Errorf("%q", text)
			}
		}
	})
}
