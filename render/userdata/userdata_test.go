package userdata_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/render/userdata"
)

// cloudConfig is what cloud-init reads of a document.
type cloudConfig struct {
	WriteFiles []struct {
		Path, Content, Owner, Permissions, Encoding string
		Append                                      bool
	} `yaml:"write_files"`
	BootCmd []string `yaml:"bootcmd"`
	RunCmd  []string `yaml:"runcmd"`
	Users   []struct {
		Name   string
		Gecos  string
		Passwd string
		Keys   []string `yaml:"ssh_authorized_keys"`
	}
	Mounts [][]string
	NTP    struct{ Servers []string }
}

func parse(t interface{ Fatalf(string, ...any) }, text string) cloudConfig {
	var c cloudConfig
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		t.Fatalf("no YAML: %v\n%s", err, text)
	}
	return c
}

func anyText() *rapid.Generator[string] {
	return rapid.OneOf(rapid.String(), rapid.StringMatching(`[ -~\n\t]{0,40}`),
		rapid.SampledFrom([]string{"", "a: b", "- x", "#c", "a #b", "true", "~", "null", "{{ ds }}", "'x'", `"x"`, "x\n\n", "\n", " x", "\tx", "a\\b", "%", "@x", "*a", "&a", "|", "é", "\u0085", "\ufeffx"}))
}

// TestNothingIsLost reads back what was written, for any text.
func TestNothingIsLost(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		content, command, gecos, key, mount := anyText().Draw(rt, "content"), anyText().Draw(rt, "command"), anyText().Draw(rt, "gecos"), anyText().Draw(rt, "key"), anyText().Draw(rt, "mount")
		path := anyText().Filter(func(s string) bool { return s != "" }).Draw(rt, "path")
		shared := userdata.CloudInit{
			Files:  []userdata.File{{Path: path, Content: content, Owner: "root:root", Permissions: "0644"}},
			Users:  []userdata.User{{Name: path, Gecos: &gecos, SSHAuthorizedKeys: []string{key}}},
			Mounts: [][]string{{mount, "/x"}},
			NTP:    &userdata.NTP{Servers: []string{key}},
		}
		kubeadm, err := userdata.Kubeadm{CloudInit: shared, PreCommands: []string{command}, BootCommands: []string{command}, Join: userdata.Join{Minor: 31, Token: "t"}}.Text()
		if err != nil {
			rt.Fatalf("%v", err)
		}
		eks := userdata.EKS{CloudInit: shared, ClusterName: "c", PreCommands: []string{command}}.Text()
		for _, text := range []string{kubeadm, eks} {
			c := parse(rt, text)
			if got := c.WriteFiles[0].Content; got != content && got != content+"\n" {
				rt.Fatalf("content %q came back as %q", content, got)
			}
			if c.WriteFiles[0].Path != path || c.WriteFiles[0].Permissions != "0644" || c.RunCmd[0] != command || c.Users[0].Name != path || c.Users[0].Gecos != gecos || c.Users[0].Keys[0] != key {
				rt.Fatalf("came back as %+v from\n%s", c, text)
			}
			if c.Mounts[0][0] != mount || c.NTP.Servers[0] != key {
				rt.Fatalf("came back as %+v", c)
			}
		}
	})
}

func TestJoinConfigurationFollowsKubernetes(t *testing.T) {
	join := userdata.Join{
		Token: "t", APIServerEndpoint: "e:6443", CACertHashes: []string{"sha256:x"}, NodeName: "{{ ds.meta_data.local_hostname }}",
		KubeletExtraArgs: []userdata.Arg{{Name: "v", Value: "2"}}, Timeouts: userdata.Timeouts{Discovery: "5m0s", TLSBootstrap: "1m0s"},
		Taints: []userdata.Taint{{Key: "k", Effect: "NoSchedule"}}, SkipPhases: []string{"preflight"}, PatchesDirectory: "/p",
	}
	tests := map[int]string{
		31: `---
apiVersion: kubeadm.k8s.io/v1beta4
discovery:
  bootstrapToken:
    apiServerEndpoint: e:6443
    caCertHashes:
    - sha256:x
    token: t
kind: JoinConfiguration
nodeRegistration:
  kubeletExtraArgs:
  - name: v
    value: "2"
  name: '{{ ds.meta_data.local_hostname }}'
  taints:
  - effect: NoSchedule
    key: k
patches:
  directory: /p
skipPhases:
- preflight
timeouts:
  discovery: 5m0s
  tlsBootstrap: 1m0s
`,
		30: `---
apiVersion: kubeadm.k8s.io/v1beta3
discovery:
  bootstrapToken:
    apiServerEndpoint: e:6443
    caCertHashes:
    - sha256:x
    token: t
  timeout: 1m0s
kind: JoinConfiguration
nodeRegistration:
  kubeletExtraArgs:
    v: "2"
  name: '{{ ds.meta_data.local_hostname }}'
  taints:
  - effect: NoSchedule
    key: k
patches:
  directory: /p
skipPhases:
- preflight
`,
	}
	for minor, want := range tests {
		join.Minor = minor
		text, err := userdata.Kubeadm{Join: join}.Text()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(text, "## template: jinja\n#cloud-config\n") {
			t.Errorf("1.%d begins with %q", minor, text[:40])
		}
		files := parse(t, text).WriteFiles
		if d := cmp.Diff(want, files[0].Content); files[0].Path != "/run/kubeadm/kubeadm-join-config.yaml" || d != "" {
			t.Errorf("1.%d: %s (-want +got):\n%s", minor, files[0].Path, d)
		}
	}
	join.Minor = 21
	if _, err := (userdata.Kubeadm{Join: join}).Text(); err == nil {
		t.Error("1.21 was written although kubeadm's format for it is gone")
	}
}

func TestJoinCommand(t *testing.T) {
	yes, three, empty, odd := true, 3, "", `it's {"x": 1}`
	tests := map[string]struct {
		in   userdata.EKS
		want string
	}{
		"bare":         {userdata.EKS{}, "/etc/eks/bootstrap.sh c"},
		"another":      {userdata.EKS{Command: "/opt/join"}, "/opt/join c"},
		"sorted":       {userdata.EKS{KubeletExtraArgs: map[string]string{"b": "2", "a": "1"}}, "/etc/eks/bootstrap.sh c --kubelet-extra-args '--a=1 --b=2'"},
		"IPv6":         {userdata.EKS{IPv6: true, ServiceIPv6CIDR: "fd00::/108"}, "/etc/eks/bootstrap.sh c --ip-family ipv6 --service-ipv6-cidr fd00::/108"},
		"numbers":      {userdata.EKS{UseMaxPods: &yes, APIRetryAttempts: &three}, "/etc/eks/bootstrap.sh c --use-max-pods true --aws-api-retry-attempts 3"},
		"empty Docker": {userdata.EKS{DockerConfigJSON: &empty}, "/etc/eks/bootstrap.sh c --docker-config-json ''"},
		"odd Docker":   {userdata.EKS{DockerConfigJSON: &odd}, `/etc/eks/bootstrap.sh c --docker-config-json 'it'"'"'s {"x": 1}'`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.in.ClusterName = "c"
			if got := parse(t, tt.in.Text()).RunCmd; len(got) != 1 || got[0] != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestNodeadmParts(t *testing.T) {
	in := userdata.Nodeadm{ClusterName: "c", APIServerEndpoint: "https://e", CertificateAuthority: "Q0E=", ServiceCIDR: "10.0.0.0/16"}
	text, err := in.Text()
	if err != nil {
		t.Fatal(err)
	}
	want := "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n\n--//\nContent-Type: application/node.eks.aws\n\n---\n" +
		"apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  cluster:\n    name: c\n    apiServerEndpoint: https://e\n    certificateAuthority: Q0E=\n    cidr: 10.0.0.0/16\n\n--//--"
	if d := cmp.Diff(want, text); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	in.PreCommands = []string{"echo a\n--// b"}
	if _, err := in.Text(); !errors.Is(err, userdata.ErrBoundary) {
		t.Errorf("error %v, want ErrBoundary", err)
	}
	in.PreCommands = []string{"echo --//"}
	if _, err := in.Text(); err != nil {
		t.Errorf("error %v for a boundary inside a line", err)
	}
}

// TestNodeConfigIsYAML reads back the free-form parts and the TOML.
func TestNodeConfigIsYAML(t *testing.T) {
	toml := "version = 2\n[plugins.\"x\"]\n  y = 1\n"
	in := userdata.Nodeadm{ClusterName: "c", APIServerEndpoint: "e", CertificateAuthority: "a", ServiceCIDR: "s",
		KubeletConfig: map[string]any{"maxPods": int64(10), "b": []any{"x"}}, KubeletFlags: []string{`--a="b"`}, ContainerdConfig: toml, FeatureGates: map[string]bool{"X": true}}
	text, err := in.Text()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(text, "---\n")
	part, _, _ := strings.Cut(rest, "\n--//")
	var got struct {
		Spec struct {
			FeatureGates map[string]bool `yaml:"featureGates"`
			Kubelet      struct {
				Config map[string]any
				Flags  []string
			}
			Containerd struct{ Config string }
		}
	}
	if err := yaml.Unmarshal([]byte(part), &got); err != nil {
		t.Fatalf("%v in\n%s", err, part)
	}
	if got.Spec.Containerd.Config != toml || got.Spec.Kubelet.Config["maxPods"] != 10 || got.Spec.Kubelet.Flags[0] != `--a="b"` || !got.Spec.FeatureGates["X"] {
		t.Errorf("came back as %+v", got)
	}
}
