package template

import (
	"bytes"
	"compress/gzip"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestUserDataIsSplitByItsFormat(t *testing.T) {
	mime := "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n--//\nContent-Type: text/x-shellscript\n\n#!/bin/sh\ntrue\n" +
		"--//\nContent-Type: application/node.eks.aws\n\nkind: NodeConfig\n--//\nContent-Type: text/cloud-config\n\n#cloud-config\nntp: {}\n--//--\n"
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte("#cloud-config\nruncmd: [a]\n"))
	_ = z.Close()
	tests := map[string]struct {
		text string
		want []string
	}{
		"script":       {"#!/bin/bash\necho\n", []string{"text"}},
		"cloud-config": {"## template: jinja\n#cloud-config\nusers:\n- {name: ops}\n- default\nntp: {enabled: true}\n", []string{"users[ops]", "users[1]", "ntp"}},
		"not yaml":     {"#cloud-config\n{{ broken\n", []string{"text"}},
		"mime":         {mime, []string{"text/x-shellscript", "application/node.eks.aws", "text/cloud-config: ntp"}},
		"windows mime": {strings.ReplaceAll(mime, "\n", "\r\n"), []string{"text/x-shellscript", "application/node.eks.aws", "text/cloud-config: ntp"}},
		"ignition": {`{"ignition": {"version": "3.4.0"}, "storage": {"files": [{"path": "/etc/a"}]}, "systemd": {"units": [{"name": "x.service"}]}}`,
			[]string{"ignition.version", "storage.files[/etc/a]", "systemd.units[x.service]"}},
		"toml":    {"[settings.kubernetes]\na = 1\n[settings.host]\nb = 2\n", []string{"settings.kubernetes", "settings.host"}},
		"gzip":    {packed.String(), []string{"runcmd[0]"}},
		"twice":   {"#cloud-config\nwrite_files:\n- {path: /a}\n- {path: /a}\n", []string{"write_files[/a]", "write_files[/a]#2"}},
		"nothing": {"", []string{"text"}},
		"a bomb":  {"#cloud-config\na: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", []string{"a[0]", "a[1]", "b[0]", "b[1]", "c[0]", "c[1]"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range userDataParts(tt.text) {
				got = append(got, p.name)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("parts (-want +got):\n%s", d)
			}
		})
	}
}

// For any user data, splitting ends, and the names are unique and fit a line.
func FuzzUserDataParts(f *testing.F) {
	for _, seed := range []string{"#cloud-config\nwrite_files: [{path: a}]", "{\"storage\": {\"files\": [1]}}", "[a]\nb=1", "Content-Type: multipart/mixed; boundary=x\n\n--x\n\na\n--x--", "\x1f\x8b\x08"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		seen := map[string]bool{}
		for _, p := range userDataParts(text) {
			if strings.ContainsAny(p.name, "\n\r") || len([]rune(p.name)) > 120 {
				t.Errorf("name %q", p.name)
			}
			seen[p.name] = true
		}
		if len(seen) == 0 {
			t.Error("no part")
		}
	})
}

func TestPruningKeepsTheNewestAndWhatIsInUse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		numbers := sortedUnique2(rapid.SliceOfN(rapid.Int64Range(1, 60), 1, 40).Draw(t, "numbers"))
		wanted := rapid.SampledFrom(append([]int64{0}, numbers...)).Draw(t, "wanted")
		keep := rapid.IntRange(1, 12).Draw(t, "keep")
		used := map[int64]bool{}
		for _, n := range rapid.SliceOf(rapid.SampledFrom(numbers)).Draw(t, "used") {
			used[n] = true
		}
		gone := map[int64]bool{}
		last := int64(0)
		for _, n := range surplusVersions(numbers, []int64{wanted}, keep, used) {
			if n <= last || n == wanted || used[n] {
				t.Fatalf("%d is deleted", n)
			}
			gone[n], last = true, n
		}
		newer := 0
		for i := len(numbers) - 1; i >= 0; i-- {
			n := numbers[i]
			if n == wanted {
				continue
			}
			if wantGone := newer >= keep && !used[n]; gone[n] != wantGone {
				t.Fatalf("version %d with %d newer: deleted %v, want %v", n, newer, gone[n], wantGone)
			}
			newer++
		}
	})
}

func sortedUnique2(n []int64) []int64 {
	seen := map[int64]bool{}
	for _, v := range n {
		seen[v] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

func TestRangesAreShort(t *testing.T) {
	for want, numbers := range map[string][]int64{"": nil, "3": {3}, "1-3": {1, 2, 3}, "1, 3-4, 9": {1, 3, 4, 9}} {
		if got := ranges(numbers); got != want {
			t.Errorf("ranges of %v: got %q, want %q", numbers, got, want)
		}
	}
}
