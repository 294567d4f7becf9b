package plan

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/render/intent"
)

func TestTheDigestIgnoresRevisionAndOrigins(t *testing.T) {
	m, in := newModel(), testInput(groupPool("web", "m5.large", 2))
	a, _ := m.pass(t, in)
	in.Commit = content.Commit{Revision: "999", Subject: "other words"}
	b, _ := m.pass(t, in)
	if a.Digest() != b.Digest() || a.Digest() == "" {
		t.Errorf("digests differ: %s %s", a.Digest(), b.Digest())
	}
	other, _ := m.pass(t, testInput(groupPool("web", "m5.xlarge", 2)))
	if a.Digest() == other.Digest() {
		t.Error("different work has one digest")
	}
	if CombinedDigest([]*Plan{a, other}) != CombinedDigest([]*Plan{other, a}) {
		t.Error("the combined digest depends on the order of targets")
	}
}

func TestThePlanAsJSONHasTheStableSchema(t *testing.T) {
	m := newModel()
	p, _ := m.pass(t, testInput(groupPool("web", "m5.large", 2)))
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if got["schema"] != "weir.dev/plan/v1" || got["target"] != "blue" {
		t.Errorf("got %v", got)
	}
	step, ok := got["steps"].([]any)[0].(map[string]any)
	if !ok {
		t.Fatal("no steps")
	}
	for _, key := range []string{"verb", "resource", "pool", "name", "reason", "disruptive", "instances", "held", "changes"} {
		if _, ok := step[key]; !ok {
			t.Errorf("a step lacks %q: %v", key, step)
		}
	}
}

func TestUserDataNeverAppearsInAPlan(t *testing.T) {
	pool := groupPool("web", "m5.large", 2)
	pool.LaunchTemplate.UserData = intent.UserData{Text: "#cloud-config\ntoken: abcdef.0123456789abcdef\n", Secret: true}
	m, in := newModel(), testInput(pool)
	p, _ := m.pass(t, in)
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), "0123456789abcdef") && strings.Contains(string(raw), "token") {
		t.Error("the plan holds user data")
	}
	if !strings.Contains(string(raw), `"hmac:`) {
		t.Error("the plan does not say that user data is set")
	}
}

func TestDescriptionsFitAndReadBack(t *testing.T) {
	d := content.Describe("0123456789abcdef:fedcba9876543210", content.Commit{Revision: "abcdef0123", Subject: strings.Repeat("ü\n", 400)})
	if n := len([]rune(d)); n > 255 {
		t.Errorf("length: got %d", n)
	}
	if odd := content.Describe("0123456789abcdef:fedcba9876543210", content.Commit{Subject: "say\u202eesaercni\x1b\u200b more"}); !strings.HasSuffix(odd, " say esaercni more") {
		t.Errorf("the console is given %q", odd)
	}
	rockets := content.Describe("0123456789abcdef:fedcba9876543210", content.Commit{Revision: "abcdef0123", Subject: strings.Repeat("🚀", 255)})
	if n := len(utf16.Encode([]rune(rockets))); n < 254 || n > 255 || !utf8.ValidString(rockets) {
		t.Errorf("UTF-16 units: got %d of %q", n, rockets)
	}
	got, ok := content.DescriptionHashes(d)
	if !ok || got != (content.Said{Body: "0123456789abcdef", Source: "fedcba9876543210"}) {
		t.Errorf("read back: got %+v %v", got, ok)
	}
	if _, ok := content.DescriptionHashes("made by hand"); ok {
		t.Error("a foreign description was read as weir's")
	}
}

// Hashing on the steady path relies on the order in which the structs declare
// their members.
func TestTemplateDataEncodesCanonically(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.Make[intent.TemplateData]().Draw(t, "data")
		if d := cmp.Diff(string(content.Canonical(data)), string(content.BodyJSON(&data))); d != "" {
			t.Fatalf("members out of order (-canonical +encoded):\n%s", d)
		}
	})
}
