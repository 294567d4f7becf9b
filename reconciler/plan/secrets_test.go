package plan

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/render/intent"
)

// planOfUserData is the plan of a pool whose user data changes, as JSON, with its digest.
func planOfUserData(t *testing.T, from, to intent.UserData) (shown, digest string) {
	t.Helper()
	before, after := groupPool("web", "m5.large", 1), groupPool("web", "m5.large", 1)
	before.LaunchTemplate.UserData, after.LaunchTemplate.UserData = from, to
	m := newModel()
	converge(t, m, testInput(before))
	p, _ := m.pass(t, testInput(after))
	raw, err := json.Marshal(p)
	if err != nil || len(p.Steps) == 0 {
		t.Fatalf("%v, %d steps", err, len(p.Steps))
	}
	return string(raw), p.Digest()
}

// TestAPlanAnswersNoGuess has user data that holds a secret changed, and compares it with
// what somebody guesses: no mark, digest or number of lines says whether the guess is right.
func TestAPlanAnswersNoGuess(t *testing.T) {
	text := func(secret string) string {
		return "#cloud-config\nwrite_files:\n- {path: /etc/a, content: " + secret + "}\n- {path: /etc/b, content: x}\n"
	}
	user := func(secret, mark string) intent.UserData {
		return intent.UserData{Text: text(secret), Format: "cloud-config", Mark: mark}
	}
	old := user("old", "mark of the old")
	secretive, digest := planOfUserData(t, old, user("hunter2", "mark of the new"))
	literal, guessed := planOfUserData(t, old, user("hunter2", ""))
	if digest == guessed {
		t.Error("the digest of a plan with the secret is that of one with the guess")
	}
	for _, part := range []string{"write_files", " line"} {
		if strings.Contains(secretive, part) {
			t.Errorf("the plan says %q:\n%s", part, secretive)
		}
	}
	if !strings.Contains(literal, "write_files") {
		t.Errorf("the plan without a secret does not say what changes:\n%s", literal)
	}
	_, mark, _ := strings.Cut(secretive[strings.Index(secretive, `"to"`):], "hmac:")
	if mark = mark[:16]; strings.Contains(literal, mark) {
		t.Errorf("the mark %s is that of the guess", mark)
	}
	concealed := user("hunter2", "")
	concealed.Concealed = true
	if shown, same := planOfUserData(t, old, concealed); same != guessed || strings.Contains(shown, "write_files") {
		t.Errorf("where a secret was, the parts are shown, or the digest is another one:\n%s", shown)
	}
	if _, again := planOfUserData(t, old, user("hunter2", "mark of the new")); again != digest {
		t.Error("the digest of the same plan is another one")
	}
	if _, other := planOfUserData(t, old, user("hunter3", "mark of the new")); other == digest {
		t.Error("another secret has the same digest: an approval would cover it")
	}
}

// TestTheSizeOfSecretsIsNotTold: user data that is too large is refused without its size
// where it holds secrets, and not at all in a pull request.
func TestTheSizeOfSecretsIsNotTold(t *testing.T) {
	large := strings.Repeat("0123456789abcdef", 2000)
	problem := func(u intent.UserData) string {
		pool := groupPool("web", "m5.large", 1)
		u.Text, u.Format = large, "toml"
		pool.LaunchTemplate.UserData = u
		p, _ := newModel().pass(t, testInput(pool))
		return fmt.Sprint(p.Diagnostics)
	}
	if said := problem(intent.UserData{}); !strings.Contains(said, "user-data-too-large") || !strings.Contains(said, "32000") {
		t.Errorf("without a secret: %s", said)
	}
	if said := problem(intent.UserData{Mark: "m"}); !strings.Contains(said, "user-data-too-large") || strings.Contains(said, "32000") {
		t.Errorf("with a secret: %s", said)
	}
	if said := problem(intent.UserData{Mark: "m", AnySize: true}); strings.Contains(said, "user-data-too-large") {
		t.Errorf("in a pull request: %s", said)
	}
}
