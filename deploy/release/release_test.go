package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

var day = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// An archive is the same whenever, wherever and in what order it is made.
func TestArchive(t *testing.T) {
	make := func(at time.Time, reversed bool) []byte {
		dir := t.TempDir()
		files := []file{
			{name: "weir-1/weir", from: filepath.Join(dir, "weir"), mode: 0o755},
			{name: "weir-1/LICENSE", from: filepath.Join(dir, "LICENSE"), mode: 0o644},
		}
		for _, f := range files {
			if err := os.WriteFile(f.from, []byte("content of "+f.name), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(f.from, at, at); err != nil {
				t.Fatal(err)
			}
		}
		if reversed {
			slices.Reverse(files)
		}
		to := filepath.Join(dir, "a.tar.gz")
		if err := writeArchive(to, files, day); err != nil {
			t.Fatal(err)
		}
		out, err := os.ReadFile(to)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	first := make(day, false)
	if !bytes.Equal(first, make(day.Add(time.Hour), true)) {
		t.Error("two archives of the same files differ")
	}
	zip, err := gzip.NewReader(bytes.NewReader(first))
	if err != nil || !zip.ModTime.IsZero() || zip.Name != "" {
		t.Fatalf("header %+v, %v", zip.Header, err)
	}
	var names []string
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil || string(content) != "content of "+h.Name || !h.ModTime.Equal(day) || h.Uid != 0 || h.Gid != 0 {
			t.Errorf("%+v holds %q, %v", h, content, err)
		}
		if executable := h.Mode&0o111 != 0; executable != strings.HasSuffix(h.Name, "/weir") {
			t.Errorf("%s has mode %o", h.Name, h.Mode)
		}
		names = append(names, h.Name)
	}
	if want := []string{"weir-1/LICENSE", "weir-1/weir"}; !slices.Equal(names, want) {
		t.Errorf("holds %v, want %v", names, want)
	}
}

func TestSums(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b", "a"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeSums(dir); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, sums))
	want := "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb  a\n3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d  b\n"
	if string(got) != want || err != nil {
		t.Errorf("%s, %v", got, err)
	}
}

// The bill names every module of the binary as it was used, and itself.
func TestBill(t *testing.T) {
	info := &debug.BuildInfo{
		GoVersion: "go1.26.8", Main: debug.Module{Path: "github.com/weir-gitops/weir", Version: "(devel)"},
		Deps: []*debug.Module{
			{Path: "go.yaml.in/yaml/v3", Version: "v3.0.5", Sum: "h1:abc="},
			{Path: "example.org/old", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/new", Version: "v1.1.0+incompatible", Sum: "h1:def="}},
		},
		Settings: []debug.BuildSetting{{Key: "GOOS", Value: "linux"}, {Key: "-ldflags", Value: "-X main.commit=x"}},
	}
	b := billOf(info, sha256.Sum256([]byte("binary")), "v1.2.3", day)
	var refs []string
	for _, c := range b.Components {
		refs = append(refs, c.PURL)
	}
	want := []string{"pkg:golang/example.org/new@v1.1.0%2Bincompatible", "pkg:golang/go.yaml.in/yaml/v3@v3.0.5", "pkg:golang/stdlib@1.26.8"}
	if !slices.Equal(refs, want) || !slices.Equal(b.Dependencies[0].DependsOn, want) {
		t.Errorf("components %v, want %v", refs, want)
	}
	if c := b.Metadata.Component; c.PURL != "pkg:golang/github.com/weir-gitops/weir@v1.2.3" || c.Type != "application" || len(c.Hashes[0].Content) != 64 || len(c.Properties) != 1 {
		t.Errorf("itself %+v", c)
	}
	// The form of a serial number in CycloneDX's schema.
	if !regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(b.SerialNumber) {
		t.Errorf("serial number %s", b.SerialNumber)
	}
	out, err := json.Marshal(b)
	if err != nil || !strings.Contains(string(out), `"timestamp":"2026-03-02T12:00:00Z"`) || !strings.Contains(string(out), `"bomFormat":"CycloneDX","specVersion":"1.5"`) {
		t.Errorf("%s, %v", out, err)
	}
}

func TestRefused(t *testing.T) {
	for name, args := range map[string][]string{
		"no version":       {"-epoch", "1"},
		"no time":          {"-version", "v1"},
		"version as path":  {"-epoch", "1", "-version", "../v1"},
		"version as flags": {"-epoch", "1", "-version", "v1 -X x"},
		"platform":         {"-epoch", "1", "-version", "v1", "-platforms", "linux", "-out", filepath.Join(t.TempDir(), "dist")},
	} {
		if err := run(t.Context(), args); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
