package fleet

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weir-gitops/weir/reconciler/accounts"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/fleet/fleettest"
	"github.com/weir-gitops/weir/render/redact"
	"github.com/weir-gitops/weir/render/sops/sopstest"
	"github.com/weir-gitops/weir/render/tree"
)

// askKMS makes one call to the embedded KMS, past weir.
func askKMS(t *testing.T, url, action string, in, out any) {
	t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.1")
	req.Header.Set("X-Amz-Target", "TrentService."+action)
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=weir/20260101/eu-west-1/kms/aws4_request, SignedHeaders=host, Signature=0")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if err := json.NewDecoder(res.Body).Decode(out); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", action, res.Status, err)
	}
}

// bootPools is a tree whose pool boots from an encrypted Secret.
func bootPools(secret string) tree.Map {
	pool := fleettest.Pool("web", `dataSecretName: ""`, "dataSecretName: boot")
	return tree.Map{"a/pool.yaml": pool, "a/secret.yaml": secret}
}

func TestKMSKeysOfATarget(t *testing.T) {
	h := newHarness(t, "- {name: a, path: a, region: eu-west-1}")
	var made struct{ KeyMetadata struct{ Arn string } }
	askKMS(t, h.url, "CreateKey", map[string]any{}, &made)
	arn := made.KeyMetadata.Arn
	key := sopstest.KMS(arn, func(dataKey []byte) []byte {
		var out struct{ CiphertextBlob []byte }
		askKMS(t, h.url, "Encrypt", map[string]any{"KeyId": arn, "Plaintext": dataKey}, &out)
		return out.CiphertextBlob
	})
	var calls atomic.Int64
	h.accounts = accounts.New(accounts.Options{Logger: slog.New(slog.DiscardHandler), Getenv: func(string) string { return "" }, OnCall: func(c sdk.CallInfo) {
		if c.Service == "kms" {
			calls.Add(1)
		}
	}})
	var registry redact.Registry
	h.fleet = New(Options{Config: h.fleet.o.Config, Accounts: h.accounts, Secrets: &registry, Logger: slog.New(slog.DiscardHandler)})
	target := &h.fleet.o.Config.Targets[0]
	files := bootPools(sopstest.Secret(t, key, "boot", "value", "#!/bin/bash\nexport TOKEN=s3cr3t-t0ken-9\n"))

	_, got := h.compose(View{ID: "r", Snapshot: snap("1", files)})
	if d := got["a"]; d.Whole || d.Set != nil || len(d.Diagnostics) != 1 || d.Diagnostics[0].Code != "sops-no-key" || !strings.Contains(d.Diagnostics[0].Summary, arn) || calls.Load() != 0 {
		t.Fatalf("without the key: %v, %d calls", d.Diagnostics, calls.Load())
	}

	target.KMSKeyARNs = []string{arn}
	for i, revision := range []string{"1", "1", "2", "3"} {
		if i >= 2 {
			files["a/new-"+revision+".yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: new-" + revision + "}\n"
		}
		_, got = h.compose(View{ID: "r", Snapshot: snap(revision, files)})
		d := got["a"]
		if !d.Whole || len(d.Set.Pools) != 1 || !strings.Contains(d.Set.Pools[0].LaunchTemplate.UserData.Text, "s3cr3t-t0ken-9") {
			t.Fatalf("with the key: %v", d.Diagnostics)
		}
	}
	if calls.Load() != 1 {
		t.Errorf("four passes over three commits asked KMS %d times", calls.Load())
	}
	if shown := registry.Redact("TOKEN is s3cr3t-t0ken-9"); strings.Contains(shown, "s3cr3t") {
		t.Errorf("the registry shows %q", shown)
	}
}

func TestKMSThatRefuses(t *testing.T) {
	h := newHarness(t, "- {name: a, path: a, region: eu-west-1, kmsKeyARNs: [arn:aws:kms:eu-west-1:000000000000:key/none]}")
	key := sopstest.KMS("arn:aws:kms:eu-west-1:000000000000:key/none", func([]byte) []byte { return []byte("a blob of no key at all, and long enough") })
	files := bootPools(sopstest.Secret(t, key, "boot", "value", "text of the secret"))
	for range 2 {
		_, got := h.compose(View{ID: "r", Snapshot: snap("1", files)})
		d := got["a"]
		if d.Whole || d.Set != nil || len(d.Diagnostics) != 1 || d.Diagnostics[0].Code != "sops-key-failed" || !strings.Contains(d.Diagnostics[0].Summary, "NotFoundException") {
			t.Fatalf("%v", d.Diagnostics)
		}
	}
}

func TestAgeKeysOfATarget(t *testing.T) {
	h := newHarness(t, "- {name: a, path: a, region: eu-west-1, ageKeyFiles: [key.txt]}")
	key := sopstest.Age(t)
	files := bootPools(sopstest.Secret(t, key, "boot", "value", "text of the secret"))
	view := View{ID: "r", Snapshot: snap("1", files)}
	_, got := h.compose(view)
	if d := got["a"]; d.Err == nil || !strings.Contains(d.Err.Error(), "read age keys") || d.Whole {
		t.Fatalf("without the file: %v", d.Err)
	}
	for _, step := range []struct {
		text, code string
	}{{"no key\n", ""}, {sopstest.Age(t).Identity, "sops-no-key"}, {key.Identity, "ok"}, {sopstest.Age(t).Identity + key.Identity, "ok"}} {
		if err := os.WriteFile(h.fleet.o.Config.Targets[0].AgeKeyFiles[0], []byte(step.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, got := h.compose(view)
		d := got["a"]
		switch {
		case step.code == "ok" && !d.Whole, step.code == "" && d.Err == nil, strings.HasPrefix(step.code, "sops") && (len(d.Diagnostics) != 1 || d.Diagnostics[0].Code != step.code):
			t.Errorf("with %q…: %v, %v", step.text[:6], d.Err, d.Diagnostics)
		}
		if d.Err != nil && strings.Contains(d.Err.Error(), strings.TrimSpace(step.text)) {
			t.Errorf("the error shows the file: %v", d.Err)
		}
	}
}
