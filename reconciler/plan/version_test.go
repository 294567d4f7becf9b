package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// newerImage is the input with another answer to the image lookup.
func newerImage(in model.Input) model.Input {
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
