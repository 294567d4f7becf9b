package sops

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
)

// reversed is a KMS that encrypts by turning bytes round.
type reversed struct{}

func (reversed) turn(in []byte) []byte {
	out := make([]byte, len(in))
	for i, b := range in {
		out[len(in)-1-i] = b
	}
	return out
}

func (r reversed) Encrypt(_ context.Context, arn string, plain []byte, _ map[string]string) ([]byte, error) {
	if arn != ourKey {
		return nil, errors.New("kms:Encrypt is not allowed")
	}
	return r.turn(plain), nil
}

func (r reversed) Decrypt(_ context.Context, _ string, blob []byte, _ map[string]string) ([]byte, error) {
	return r.turn(blob), nil
}

const ourKey = "arn:aws:kms:eu-west-1:111122223333:key/00000000-0000-4000-a000-000000000000"

// TestASealedSecretOpens: each recipient alone opens it, whatever the value is, and
// nothing of the value stands in it.
func TestASealedSecretOpens(t *testing.T) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{"value": "#cloud-config\nruncmd:\n  - \"join: é\"\n\n", "format": "ignition", "empty": "", "odd": "- a\n\t${X} ENC[AES256_GCM,\x01"}
	text, err := SealSecret(t.Context(), time.Now(), "web", []string{"value", "format", "empty", "odd"}, values, Recipients{Age: []string{id.Recipient().String()}, KMSKeyARNs: []string{ourKey}, KMS: reversed{}})
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte("cloud-config")) || !bytes.Contains(text, []byte("name: web")) {
		t.Errorf("got\n%s", text)
	}
	for name, d := range map[string]*Decrypter{
		"age": New(Options{Identities: []age.Identity{id}}), "kms": New(Options{KMSKeyARNs: []string{ourKey}, KMS: reversed{}}),
	} {
		f, ok := d.Open(t.Context(), "secret.yaml", text)
		if !ok || len(f.Faults) > 0 {
			t.Fatalf("%s: %v\n%s", name, f.Faults, text)
		}
		got := documents(t, f.Content)[0].(map[string]any)["data"].(map[string]any)
		for k, want := range values {
			if plain, err := base64.StdEncoding.DecodeString(got[k].(string)); err != nil || string(plain) != want {
				t.Errorf("%s: %s: got %q, want %q", name, k, plain, want)
			}
		}
	}
	changed := bytes.Replace(text, []byte("name: web"), []byte("name: other"), 1)
	if f, _ := New(Options{Identities: []age.Identity{id}}).Open(t.Context(), "secret.yaml", changed); len(f.Faults) == 0 {
		t.Error("another name passes")
	}
	program, err := exec.LookPath("sops")
	if err != nil {
		return // it is held against the program where there is one
	}
	dir := t.TempDir()
	for file, content := range map[string]string{"keys.txt": id.String(), "secret.yaml": string(text)} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.CommandContext(t.Context(), program, "decrypt", "--extract", `["data"]["value"]`, "secret.yaml")
	c.Dir, c.Env = dir, append(os.Environ(), "SOPS_AGE_KEY_FILE=keys.txt")
	if out, err := c.CombinedOutput(); err != nil || string(out) != base64.StdEncoding.EncodeToString([]byte(values["value"])) {
		t.Errorf("sops: %v\n%s", err, out)
	}
}

func TestNothingIsSealedForNobody(t *testing.T) {
	for want, to := range map[string]Recipients{
		"there is no key":            {},
		"not an age recipient":       {Age: []string{"age1secret"}},
		"kms:Encrypt is not allowed": {KMSKeyARNs: []string{"arn:aws:kms:eu-west-1:111122223333:key/x"}, KMS: reversed{}},
	} {
		if out, err := SealSecret(t.Context(), time.Now(), "a", []string{"value"}, map[string]string{"value": "secret"}, to); err == nil || !strings.Contains(err.Error(), want) || out != nil {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
