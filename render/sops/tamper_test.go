package sops

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/render/diag"
)

// open decrypts a changed vector and returns its one fault, or ok.
func open(t *testing.T, d *Decrypter, name, text string) diag.Diagnostic {
	t.Helper()
	f, ok := d.Open(t.Context(), name, []byte(text))
	if !ok {
		return diag.Diagnostic{Code: "plain"}
	}
	if len(f.Faults) == 0 {
		return diag.Diagnostic{Code: "ok"}
	}
	for _, secret := range []string{"vector-password", "vector-env", "vector-hidden"} {
		if strings.Contains(fmt.Sprint(f.Faults), secret) {
			t.Errorf("the fault shows a secret: %v", f.Faults)
		}
	}
	if strings.Contains(string(f.Content), "vector-") {
		t.Errorf("a file that is not trusted has content:\n%s", f.Content)
	}
	return f.Faults[0]
}

func TestTampering(t *testing.T) {
	d := New(Options{Identities: identities(t)})
	for _, tc := range []struct {
		name, file, old, new, code string
	}{
		{"plain value", "regex.yaml", "name: bootstrap", "name: elsewhere", "sops-mac-mismatch"},
		{"plain value outside the MAC", "maconly.yaml", "name: bootstrap", "name: elsewhere", "ok"},
		{"value in plain text", "maconly.yaml", "password: ENC", "password: pw\n    other: ENC", "sops-invalid"},
		{"key renamed", "regex.yaml", "    password: ENC", "    passw0rd: ENC", "sops-invalid"},
		{"value removed", "values.env", "EMPTY=\n", "EMPTY=x\n", "sops-invalid"},
		{"line added", "regex.yaml", "kind: Secret", "kind: Secret\nadded: text", "sops-mac-mismatch"},
		{"MAC removed", "regex.yaml", "    mac: ", "    nomac: ", "plain"},
		{"time changed", "regex.yaml", `lastmodified: "20`, `lastmodified: "19`, "sops-mac-mismatch"},
		{"time broken", "regex.yaml", `lastmodified: "`, `lastmodified: "x`, "sops-mac-mismatch"},
		{"data broken", "regex.yaml", "password: ENC[AES256_GCM,data:", "password: ENC[AES256_GCM,data:AAAA", "sops-invalid"},
		{"rule widened", "regex.yaml", "encrypted_regex: ^(data|stringData)$", "encrypted_regex: ^(data)$", "sops-mac-mismatch"},
		{"rule broken", "regex.yaml", "encrypted_regex: ^(data|stringData)$", "encrypted_regex: '('", "sops-invalid"},
		{"key broken", "values.env", `-----BEGIN AGE ENCRYPTED FILE-----\n`, `-----BEGIN AGE ENCRYPTED FILE-----\nAAAA`, "sops-key-failed"},
		{"a line without a key", "values.env", "PASSWORD=", "PASSWORD", "sops-invalid"},
		{"groups swapped for text", "groups.yaml", "key_groups:", "age: [x]\n    key_groups_off:", "sops-invalid"},
		{"anchors", "regex.yaml", "kind: Secret", "kind: &a [*a]", "sops-invalid"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text := read(t, tc.file)
			if !strings.Contains(text, tc.old) {
				t.Fatalf("%s has no %q", tc.file, tc.old)
			}
			if got := open(t, d, tc.file, strings.ReplaceAll(text, tc.old, tc.new)); got.Code != tc.code {
				t.Errorf("got %s: %s, want %s", got.Code, got.Summary, tc.code)
			}
		})
	}
}

func TestPlainFiles(t *testing.T) {
	for name, text := range map[string]string{
		"a.yaml": "a: 1\n", "b.yaml": "note: 'ENC[AES256_GCM,data:x]'\n", "c.yaml": "sops: {}\na: ENC[AES256_GCM,\n", "d.json": `{"sops":1,"x":"ENC[AES256_GCM,"}`,
		"e.env": "A=ENC[AES256_GCM,\n", "f.ini": "a=ENC[AES256_GCM,\n", "g": "ENC[AES256_GCM,", "h": "{ENC[AES256_GCM,",
	} {
		if f, ok := New(Options{}).Open(t.Context(), name, []byte(text)); ok {
			t.Errorf("%s is taken for encrypted: %v", name, f.Faults)
		}
	}
}

// fakeKMS knows the data key of one blob.
type fakeKMS struct {
	calls []string
	err   error
	key   []byte
}

func (k *fakeKMS) Decrypt(_ context.Context, arn string, blob []byte, ec map[string]string) ([]byte, error) {
	k.calls = append(k.calls, fmt.Sprint(arn, " ", string(blob), " ", ec))
	return k.key, k.err
}

const listed1, unlisted = "arn:aws:kms:eu-west-1:000000000000:key/one", "arn:aws:kms:eu-west-1:000000000000:key/two"

// underKMS rewrites a vector to name keys of KMS in the place of its recipient.
func underKMS(t *testing.T) (text string, key []byte) {
	t.Helper()
	d := New(Options{Identities: identities(t)})
	in := read(t, "encsuffix.yaml")
	doc, err := loadYAML([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	key, _, fault := d.dataKey(t.Context(), doc.meta, diag.Position{})
	if fault != nil {
		t.Fatal(fault)
	}
	head, tail, _ := strings.Cut(in, "    age:\n")
	_, tail, _ = strings.Cut(tail, "    encrypted_suffix:")
	entry := func(arn string) string {
		return fmt.Sprintf("        - arn: %s\n          context:\n            app: web\n          role: arn:aws:iam::000000000000:role/admin\n          aws_profile: prod\n          enc: %s\n",
			arn, base64.StdEncoding.EncodeToString([]byte("blob")))
	}
	return head + "    kms:\n" + entry(unlisted) + entry(listed1) + "    encrypted_suffix:" + tail, key
}

func TestKMS(t *testing.T) {
	text, key := underKMS(t)
	now := time.Unix(0, 0)
	kms := &fakeKMS{err: errors.New("AccessDenied: no; let the role kms:Decrypt it")}
	d := New(Options{KMS: kms, KMSKeyARNs: []string{listed1}, Now: func() time.Time { return now }, Placeholders: true})
	for range 3 {
		f, _ := d.Open(t.Context(), "a.yaml", []byte(text))
		if len(f.Faults) != 1 || f.Faults[0].Code != "sops-key-failed" || f.Faults[0].Severity != diag.Error || !f.Retry || !strings.Contains(f.Faults[0].Summary, "AccessDenied") {
			t.Fatalf("%+v", f)
		}
	}
	if len(kms.calls) != 1 || kms.calls[0] != listed1+" blob map[app:web]" {
		t.Fatalf("calls %q", kms.calls)
	}
	kms.err, kms.key = nil, key
	now = now.Add(time.Minute)
	for i := range 3 {
		f, _ := d.Open(t.Context(), fmt.Sprintf("%d.yaml", i), []byte(text))
		if len(f.Faults) > 0 || !strings.Contains(string(f.Content), `"vector-hidden"`) {
			t.Fatalf("%+v\n%s", f, f.Content)
		}
	}
	if len(kms.calls) != 2 {
		t.Errorf("a steady reader asked %d times", len(kms.calls))
	}
	f, _ := New(Options{KMS: kms, KMSKeyARNs: []string{"arn:aws:kms:eu-west-1:000000000000:key/three"}}).Open(t.Context(), "a.yaml", []byte(text))
	if len(f.Faults) != 1 || f.Faults[0].Code != "sops-no-key" || !strings.Contains(f.Faults[0].Summary, listed1) || len(kms.calls) != 2 {
		t.Errorf("a key that is not listed: %v, %d calls", f.Faults, len(kms.calls))
	}
	kms.key = []byte("short")
	f, _ = New(Options{KMS: kms, KMSKeyARNs: []string{listed1}}).Open(t.Context(), "a.yaml", []byte(text))
	if len(f.Faults) != 1 || f.Faults[0].Code != "sops-invalid" {
		t.Errorf("a short data key: %v", f.Faults)
	}
}

func FuzzOpen(f *testing.F) {
	for _, name := range []string{"whole.yaml", "regex.yaml", "object.json", "values.env", "binary.key", "groups.yaml", "values.ini", "envgroups.env"} {
		text, err := testdata(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(name, text)
	}
	keys, err := testdata("throwaway-age-keys.txt")
	if err != nil {
		f.Fatal(err)
	}
	ids, err := ParseIdentities(string(keys))
	if err != nil {
		f.Fatal(err)
	}
	d := New(Options{Identities: ids})
	f.Fuzz(func(t *testing.T, name string, text []byte) {
		if len(text) > 1<<16 {
			t.Skip("too large to be quick")
		}
		file, ok := d.Open(context.Background(), name, text)
		if ok && len(file.Faults) > 0 && len(file.Secrets) > 0 {
			t.Error("a file with a fault has secrets")
		}
		if ok && len(file.Faults) == 0 && strings.Contains(string(file.Content), "sops_mac") {
			t.Error("the metadata stayed")
		}
	})
}
