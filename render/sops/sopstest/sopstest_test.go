package sopstest_test

import (
	"strings"
	"testing"

	"github.com/weir-gitops/weir/render/sops"
	"github.com/weir-gitops/weir/render/sops/sopstest"
)

// TestDecrypts holds the encryption for tests to what is decrypted in earnest.
func TestDecrypts(t *testing.T) {
	key := sopstest.Age(t)
	ids, err := sops.ParseIdentities(key.Identity)
	if err != nil {
		t.Fatal(err)
	}
	d := sops.New(sops.Options{Identities: ids})
	for name, text := range map[string]string{
		"secret.yaml": sopstest.Secret(t, key, "a", "value", "the secret\ntext"),
		"whole.yaml":  sopstest.YAML(t, key, sopstest.Field{Path: "a.b", Value: "the secret"}, sopstest.Field{Path: "a.c.d", Value: "another"}, sopstest.Field{Path: "e", Value: "third"}),
		"values.env":  sopstest.Dotenv(t, key, sopstest.Field{Path: "A", Value: "the secret"}),
		"binary":      sopstest.Binary(t, key, "the secret"),
	} {
		f, ok := d.Open(t.Context(), name, []byte(text))
		if !ok || len(f.Faults) > 0 || !strings.Contains(string(f.Content), "the secret") || len(f.Secrets) == 0 {
			t.Errorf("%s: %v\n%s", name, f.Faults, f.Content)
		}
	}
}
