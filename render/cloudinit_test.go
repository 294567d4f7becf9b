package render_test

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// cloudConfigs are the cloud-init documents of a user data: itself, or parts of
// a MIME document.
func cloudConfigs(t *testing.T, text string) []string {
	t.Helper()
	switch {
	case strings.HasPrefix(text, "## template: jinja\n"):
		// Expressions stand inside texts here, so it is YAML before they are expanded.
		return []string{strings.TrimPrefix(text, "## template: jinja\n")}
	case strings.HasPrefix(text, "#cloud-config"):
		return []string{text}
	case !strings.HasPrefix(text, "MIME-Version:"):
		return nil
	}
	var out []string
	for _, p := range mimeParts(t, text) {
		if p.contentType == "text/cloud-config" {
			out = append(out, p.body)
		}
	}
	return out
}

type mimePart struct{ contentType, body string }

// mimeParts reads a MIME document as any reader of mail does.
func mimeParts(t *testing.T, text string) []mimePart {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		t.Fatalf("no MIME document: %v", err)
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(kind, "multipart/") {
		t.Fatalf("content type %q: %v", kind, err)
	}
	var out []mimePart
	for r := multipart.NewReader(m.Body, params["boundary"]); ; {
		p, err := r.NextPart()
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
		if len(p.Header) == 0 && len(body) == 0 {
			continue // Cluster API's AWS provider writes one behind a script
		}
		kind, _, err := mime.ParseMediaType(p.Header.Get("Content-Type"))
		if err != nil {
			t.Fatalf("part %d: %v", len(out), err)
		}
		out = append(out, mimePart{kind, string(body)})
	}
}

// goldenUserData are the user data of all goldens, by golden and pool.
func goldenUserData(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no goldens: %v", err)
	}
	out := map[string]string{}
	for _, name := range names {
		for section, text := range readGolden(t, name).want {
			if pool, ok := strings.CutPrefix(section, "userdata/"); ok {
				out[strings.TrimSuffix(filepath.Base(name), ".txtar")+" "+pool] = text
			}
		}
	}
	return out
}

func TestGoldensAreMIME(t *testing.T) {
	documents := 0
	for name, text := range goldenUserData(t) {
		if !strings.HasPrefix(text, "MIME-Version:") {
			continue
		}
		documents++
		configs := 0
		for _, p := range mimeParts(t, text) {
			switch p.contentType {
			case "application/node.eks.aws":
				configs++
			case "text/x-shellscript", "text/cloud-config":
			default:
				t.Errorf("%s has a part of type %s", name, p.contentType)
			}
		}
		if configs != 1 {
			t.Errorf("%s has %d parts for nodeadm, want 1", name, configs)
		}
	}
	if documents == 0 {
		t.Error("no golden is a MIME document")
	}
}

// TestCloudInitAcceptsGoldens runs cloud-init's own check of its schema over the
// goldens, where cloud-init is installed.
func TestCloudInitAcceptsGoldens(t *testing.T) {
	program, err := exec.LookPath("cloud-init")
	if err != nil {
		t.Skip("cloud-init is not installed, so its schema is not asked")
	}
	checked := 0
	for name, text := range goldenUserData(t) {
		for _, doc := range cloudConfigs(t, text) {
			if strings.Contains(doc, "\n    inactive: true\n") {
				continue // of which the render warns
			}
			file := filepath.Join(t.TempDir(), "user-data.yaml")
			if err := os.WriteFile(file, []byte(doc), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.CommandContext(t.Context(), program, "schema", "--config-file", file).CombinedOutput()
			if err != nil || bytes.Contains(out, []byte("Error")) {
				t.Errorf("%s: %v\n%s", name, err, out)
			}
			checked++
		}
	}
	if checked == 0 {
		t.Error("nothing was checked")
	}
}
