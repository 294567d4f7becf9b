package sops

import (
	"bytes"
	"context"
	"regexp"
	"testing"

	"github.com/getsops/sops/v3/shamir"
	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/render/diag"
)

// Each text that sealed matches has the parts that it names.
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

// kmsParts is a KMS that decrypts nothing: what it is given is a part of a key.
type kmsParts struct{}

func (kmsParts) Decrypt(_ context.Context, _ string, blob []byte, _ map[string]string) ([]byte, error) {
	return blob, nil
}

// Any parts of groups give a key or a fault.
func TestPartsOfADataKey(t *testing.T) {
	key := bytes.Repeat([]byte{7}, keySize)
	whole, err := shamir.Split(key, 3, 2)
	if err != nil {
		t.Fatal(err)
	}
	short := append(bytes.Clone(whole[1][:10]), whole[1][keySize])
	for name, tc := range map[string]struct {
		parts [][]byte
		code  string
	}{
		"two of them":       {parts: whole[1:]},
		"all":               {parts: whole},
		"one twice":         {parts: [][]byte{whole[0], whole[0]}, code: "sops-invalid"},
		"another's length":  {parts: [][]byte{whole[0], short}, code: "sops-invalid"},
		"nothing":           {parts: [][]byte{{}, {}}, code: "sops-invalid"},
		"a key of one byte": {parts: [][]byte{{1, 1}, {1, 2}}, code: "sops-invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &metadata{Threshold: 2}
			for _, p := range tc.parts {
				m.Groups = append(m.Groups, []masterKey{{kind: "kms", name: "arn", data: p}})
			}
			d := New(Options{KMS: kmsParts{}, KMSKeyARNs: []string{"arn"}})
			got, _, problem := d.dataKey(t.Context(), m, diag.Position{})
			if tc.code == "" && (problem != nil || !bytes.Equal(got, key)) || tc.code != "" && (problem == nil || problem.Code != tc.code || got != nil) {
				t.Errorf("%x, %v", got, problem)
			}
		})
	}
}
