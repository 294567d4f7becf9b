package userdata_test

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/render/userdata"
)

type mimePart struct{ kind, name, body string }

// mimeParts reads a MIME document with the readers of mail. The part without
// header and content that follows a script is Cluster API's, and left out.
func mimeParts(t interface{ Fatalf(string, ...any) }, text string) []mimePart {
	m, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		t.Fatalf("no MIME document: %v", err)
	}
	_, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		t.Fatalf("content type: %v", err)
	}
	var out []mimePart
	for r := multipart.NewReader(m.Body, params["boundary"]); ; {
		p, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("part %d: %v", len(out), err)
		}
		body, err := io.ReadAll(p)
		if err != nil {
			t.Fatalf("part %d: %v", len(out), err)
		}
		kind, _, _ := strings.Cut(p.Header.Get("Content-Type"), ";")
		if kind != "" || len(body) > 0 {
			out = append(out, mimePart{kind, p.FileName(), string(body)})
		}
	}
}

// TestMIMEPartsComeBack writes any texts into a NodeadmConfig and reads them back
// through MIME and YAML.
func TestMIMEPartsComeBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		content, flag, name, toml := anyText().Draw(rt, "content"), anyText().Draw(rt, "flag"), anyText().Draw(rt, "name"), anyText().Draw(rt, "toml")
		command := rapid.StringMatching(`[ -~\n\t]{1,40}`).Draw(rt, "command")
		// Control characters in free-form values are refused, with an error.
		setting := anyText().Filter(func(s string) bool { return !strings.ContainsFunc(s, unicode.IsControl) || s == "x\n\n" }).Draw(rt, "setting")
		in := userdata.Nodeadm{
			CloudInit:   userdata.CloudInit{Files: []userdata.File{{Path: "/a", Content: content}}},
			ClusterName: name, APIServerEndpoint: "https://e", CertificateAuthority: "Q0E=", ServiceCIDR: "10.0.0.0/16",
			KubeletConfig: map[string]any{"x": setting}, KubeletFlags: []string{flag}, ContainerdConfig: toml,
			PreCommands: []string{command, "true"}, FeatureGates: map[string]bool{name: true},
		}
		text, err := in.Text()
		if err != nil {
			rt.Fatalf("%v", err)
		}
		if again, _ := in.Text(); again != text {
			rt.Fatal("two documents differ")
		}
		parts := mimeParts(rt, text)
		var kinds, names []string
		for _, p := range parts {
			kinds, names = append(kinds, p.kind), append(names, p.name)
		}
		if d := cmp.Diff([]string{"text/x-shellscript", "application/node.eks.aws", "text/cloud-config"}, kinds); d != "" {
			rt.Fatalf("(-want +got):\n%s\n%s", d, text)
		}
		if d := cmp.Diff([]string{"commands.sh", "", "cloud-config.yaml"}, names); d != "" {
			rt.Fatalf("(-want +got):\n%s", d)
		}
		if want := "#!/bin/bash\nset -o errexit\nset -o pipefail\nset -o nounset\n" + command + "\ntrue"; parts[0].body != want {
			rt.Fatalf("script %q, want %q", parts[0].body, want)
		}
		var node struct {
			Spec struct {
				Cluster      struct{ Name string }
				FeatureGates map[string]bool `yaml:"featureGates"`
				Kubelet      struct {
					Config map[string]string
					Flags  []string
				}
				Containerd struct{ Config string }
			}
		}
		if err := yaml.Unmarshal([]byte(parts[1].body), &node); err != nil {
			rt.Fatalf("%v in\n%s", err, parts[1].body)
		}
		s := node.Spec
		if s.Cluster.Name != name || s.Kubelet.Config["x"] != setting || len(s.Kubelet.Flags) != 1 || s.Kubelet.Flags[0] != flag || !s.FeatureGates[name] {
			rt.Fatalf("came back as %+v from\n%s", s, parts[1].body)
		}
		if got := s.Containerd.Config; got != toml && got != toml+"\n" {
			rt.Fatalf("TOML %q came back as %q", toml, got)
		}
		if got := parse(rt, parts[2].body).WriteFiles[0].Content; got != content && got != content+"\n" {
			rt.Fatalf("content %q came back as %q", content, got)
		}
	})
}
