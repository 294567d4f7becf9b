package sops

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"
)

// Whatever sealed matches has the parts that it says.
func TestUnsealed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.StringMatching(`ENC\[AES256_GCM,data:[aB0+/=]{0,4},iv:[aB=]{0,3},tag:[a=]{0,3},type:[a-z]{0,3}\]`),
			rapid.StringMatching(`(ENC\[AES256_GCM,)?(data:)?[a,:]{0,3}(,iv:|,tag:|,type:|\]|\n){0,5}`),
		).Draw(t, "text")
		parts, ok := unsealed(text)
		if m := sealed.FindStringSubmatch(text); m != nil && (!ok || [4]string(m[1:]) != parts) {
			t.Errorf("%q has the parts %q, want %q", text, parts, m[1:])
		}
	})
}

func TestDocumentEnd(t *testing.T) {
	end := regexp.MustCompile(`(?m)^(---|\.\.\.)([ \t\r]|$)`)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`([-.]{2,4}|[a \t\r\n]){0,12}`).Draw(t, "text")
		want := -1
		if m := end.FindStringIndex(text); m != nil {
			want = m[0]
		}
		if got := documentEnd([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	})
}
