package plan

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"

	"pgregory.net/rapid"
)

// newerImage is the input with another answer to the image lookup.
func newerImage(in Input) Input {
	in.Answers = maps.Clone(in.Answers)
	in.Answers[imageLookup] = observed.Answer{Image: &observed.Image{ID: "ami-2", RootDevice: "/dev/sda1", RootSize: 8}}
	return in
}

func TestANewerImageIsToldAndRolledOutWhereThePoolFollows(t *testing.T) {
	pool := groupPool("web", "m5.large", 3)
	m := newModel()
	converge(t, m, testInput(pool))
	p, _ := m.pass(t, newerImage(testInput(pool)))
	i := len(p.Diagnostics) - 1
	if !p.Empty() || i < 0 || p.Diagnostics[i].Code != "newer-image" || p.Diagnostics[i].Severity != diag.Info || !strings.Contains(p.Diagnostics[i].Summary, "ami-2") {
		t.Fatalf("kept: got %v and %v", verbs(p), p.Diagnostics)
	}
	pool.FollowImages = true
	if p, _ := m.pass(t, testInput(pool)); !p.Empty() {
		t.Errorf("the policy alone changes nothing: got %v", verbs(p))
	}
	p, _ = m.pass(t, newerImage(testInput(pool)))
	if d := cmp.Diff([]string{"update launch-template web", "rollout auto-scaling-group web"}, verbs(p)); d != "" {
		t.Fatalf("followed (-want +got):\n%s", d)
	}
	if why := p.Steps[0].Reason; !strings.Contains(why, "ami.id ami-1 → ami-2") {
		t.Errorf("reason: got %q", why)
	}
	converge(t, m, newerImage(testInput(pool)))
	pool.FollowImages = false
	if p, _ := m.pass(t, newerImage(testInput(pool))); !p.Empty() || len(p.Diagnostics) != 0 {
		t.Errorf("afterwards: got %v and %v", verbs(p), p.Diagnostics)
	}
}

func TestAVersionSaysWhatChangesAndFromWhat(t *testing.T) {
	before := groupPool("web", "m5.large", 1)
	before.LaunchTemplate.UserData.Text = "#cloud-config\nwrite_files:\n- {path: /etc/a, content: hunter2}\n- {path: /etc/b, content: x}\nruncmd: [one]\n"
	after := groupPool("web", "m5.xlarge", 1)
	after.LaunchTemplate.Data.KeyName = ""
	after.LaunchTemplate.UserData.Text = "#cloud-config\nwrite_files:\n- {path: /etc/a, content: correct-horse}\nruncmd: [one, two]\n"
	m := newModel()
	converge(t, m, testInput(before))
	p, _ := m.pass(t, testInput(after))
	want := "version 2, from version 1: instanceType m5.large → m5.xlarge; sshKeyName key → (none); userData (write_files[/etc/a], write_files[/etc/b], runcmd[1])"
	if got := p.Steps[0].Reason; got != want {
		t.Errorf("reason: got  %s\nwant %s", got, want)
	}
	changes := map[string]string{}
	for _, ch := range p.Steps[0].Changes {
		changes[ch.Field] = fmt.Sprint(ch.From, " → ", ch.To)
	}
	for field, words := range map[string]string{
		"userData.write_files[/etc/a]": "1 line → 1 line (+1 -1)", "userData.write_files[/etc/b]": "1 line → <nil>", "userData.runcmd[1]": "<nil> → 1 line",
		"awsLaunchTemplate.instanceType": "m5.large → m5.xlarge",
	} {
		if changes[field] != words {
			t.Errorf("%s: got %q, want %q", field, changes[field], words)
		}
	}
	raw, err := json.Marshal(p)
	if err != nil || strings.Contains(string(raw), "hunter2") || strings.Contains(string(raw), "correct-horse") {
		t.Errorf("the plan holds what is in user data: %v\n%s", err, raw)
	}
}

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

// Whatever the user data: splitting it ends, names are unique and fit a line.
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

func TestKeyMarksKnowTheirKeysAndFitATag(t *testing.T) {
	key := rapid.StringMatching(`[A-Za-z0-9./:_-]{1,128}`).Filter(func(s string) bool {
		return !strings.HasPrefix(s, "aws:") && !strings.HasPrefix(s, observed.OwnTagPrefix)
	})
	rapid.Check(t, func(t *rapid.T) {
		tags := rapid.MapOfN(key, rapid.Just("v"), 0, 50).Draw(t, "tags")
		record := observed.KeyMarks(tags)
		if len(record) > 256 {
			t.Fatalf("%d keys take %d characters", len(tags), len(record))
		}
		for k := range tags {
			if !observed.Marked(record, k) {
				t.Fatalf("%q is not in %q", k, record)
			}
		}
		if other := key.Draw(t, "other"); tags[other] == "" && observed.Marked(record, other) {
			t.Fatalf("%q is in %q", other, record)
		}
		// A record that somebody has damaged never makes weir's own tags or AWS's go.
		damaged := rapid.StringN(0, 300, -1).Draw(t, "damaged")
		if observed.Marked(damaged, observed.TagOwner) || observed.Marked(damaged, "aws:autoscaling:groupName") {
			t.Fatal("an own or AWS's tag is taken for a manifest's")
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

func TestMembersThatHoldNothingAreNotSent(t *testing.T) {
	pool := groupPool("web", "m5.large", 1)
	pool.LaunchTemplate.Data.PrivateDNSNameOptions = &intent.PrivateDNSNameOptions{}
	pool.LaunchTemplate.Data.EnclaveOptions = &intent.EnclaveOptions{}
	p, _ := newModel().pass(t, testInput(pool))
	data := p.Steps[0].Do.(step.CreateLaunchTemplate).Data
	if data.PrivateDNSNameOptions != nil || data.EnclaveOptions != nil {
		t.Errorf("got %+v", data)
	}
	if pool.LaunchTemplate.Data.EnclaveOptions == nil {
		t.Error("the intent was changed")
	}
}
