package engine

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	_ "github.com/weir-gitops/weir/reconciler/cloudtest/checked"
	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
	"github.com/weir-gitops/weir/reconciler/state/keys"
	"github.com/weir-gitops/weir/reconciler/state/statetest"
)

// kmsServer is the embedded KMS, which may deny an operation, and notes what is asked.
type kmsServer struct {
	t        *testing.T
	url      string
	client   *kms.Client
	deny     string
	contexts []map[string]string
}

func newKMSServer(t *testing.T) *kmsServer {
	emu, err := awsemu.New(awsemu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	k := &kmsServer{t: t}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if operation == "Encrypt" || operation == "Decrypt" {
			var in struct{ EncryptionContext map[string]string }
			if err := json.Unmarshal(body, &in); err != nil {
				t.Error(err)
			}
			k.contexts = append(k.contexts, in.EncryptionContext)
		}
		if operation == k.deny {
			w.Header().Set("Content-Type", "application/x-amz-json-1.1")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"__type":"AccessDeniedException","Message":"User: arn:aws:iam::000000000000:role/weir is not authorized to perform: kms:`+operation+` on this resource because no identity-based policy allows it"}`)
			return
		}
		emu.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	k.url = server.URL
	k.client = kms.New(kms.Options{Region: "eu-west-1", BaseEndpoint: &k.url, Credentials: credentials.NewStaticCredentialsProvider("weir", "weir", "")})
	t.Setenv("AWS_ACCESS_KEY_ID", "weir")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "weir")
	return k
}

func (k *kmsServer) key() string {
	out, err := k.client.CreateKey(k.t.Context(), &kms.CreateKeyInput{})
	if err != nil {
		k.t.Fatal(err)
	}
	return aws.ToString(out.KeyMetadata.Arn)
}

// With a key of KMS the engine holds no key that is plain, an instance has no other one's,
// and who may not use the key learns what is missing.
func TestKeysByKMS(t *testing.T) {
	k, memory := newKMSServer(t), coordtest.NewMemory()
	arn := k.key()
	joined := 0
	keyOf := func(c config.Coordination, instance, use string) ([]byte, error) {
		t.Helper()
		joined++
		ring, err := Keys(&config.Config{Instance: instance, AWS: config.AWS{Endpoint: k.url}, Coordination: c}, statetest.Join(t, memory, string(rune('a'+joined))))
		if err != nil {
			return nil, err
		}
		return ring.Key(t.Context(), use, nil)
	}
	byKMS := config.Coordination{KMSKeyARNs: []string{arn}}
	refused := func(what string, c config.Coordination, instance, use string, want ...string) {
		t.Helper()
		_, err := keyOf(c, instance, use)
		for _, text := range want {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v, want %q", what, err, text)
			}
		}
	}

	k.deny = "Encrypt"
	refused("before there is one", byKMS, "a", keys.Digest, "make the digest key: KMS key "+arn, "needs kms:Encrypt", "weir policy --daemon")
	k.deny = ""
	first, err := keyOf(byKMS, "a", keys.Digest)
	if err != nil || len(first) != keys.Bytes {
		t.Fatalf("%x, %v", first, err)
	}
	if second, err := keyOf(byKMS, "a", keys.Digest); err != nil || !bytes.Equal(first, second) {
		t.Errorf("two daemons have two keys, %v", err)
	}
	if session, err := keyOf(byKMS, "a", keys.Session); err != nil || bytes.Equal(session, first) {
		t.Errorf("the session key is the other one: %v", err)
	}
	for _, about := range k.contexts {
		if about["weir.dev/instance"] != "a" || about["weir.dev/key"] == "" {
			t.Errorf("asked about %v", about)
		}
	}
	page, _, err := statetest.Join(t, memory, "reader").List(t.Context(), "", "")
	if err != nil || len(page) == 0 {
		t.Fatal(len(page), err)
	}
	for _, r := range page {
		if bytes.Contains(r.Value, first) || bytes.Contains(r.Value, []byte(base64.StdEncoding.EncodeToString(first))) {
			t.Errorf("%s holds the key", r.Key)
		}
	}
	refused("another instance", byKMS, "b", keys.Digest, keys.ErrOther.Error())
	other := k.key()
	refused("another key", config.Coordination{KMSKeyARNs: []string{other}}, "a", keys.Digest, keys.ErrOther.Error())
	k.deny = "Decrypt"
	refused("a denied one", byKMS, "a", keys.Digest, "KMS key "+arn, "needs kms:Decrypt", "weir policy --daemon")
	k.deny = ""
	if _, err := k.client.DisableKey(t.Context(), &kms.DisableKeyInput{KeyId: &arn}); err != nil {
		t.Fatal(err)
	}
	refused("a disabled one", byKMS, "a", keys.Digest, "KMS key "+arn, "DisabledException")
	if _, err := k.client.EnableKey(t.Context(), &kms.EnableKeyInput{KeyId: &arn}); err != nil {
		t.Fatal(err)
	}

	// Another key takes over, and the one before goes.
	both := config.Coordination{KMSKeyARNs: []string{other, arn}}
	if key, err := keyOf(both, "a", keys.Digest); err != nil || !bytes.Equal(key, first) {
		t.Errorf("both: %v", err)
	}
	if _, err := k.client.DisableKey(t.Context(), &kms.DisableKeyInput{KeyId: &arn}); err != nil {
		t.Fatal(err)
	}
	if key, err := keyOf(config.Coordination{KMSKeyARNs: []string{other}}, "a", keys.Digest); err != nil || !bytes.Equal(key, first) {
		t.Errorf("the new key alone: %v", err)
	}
}

// Daemons come from a keysFile to KMS without losing their keys.
func TestFromAKeysFileToKMS(t *testing.T) {
	k, memory, file := newKMSServer(t), coordtest.NewMemory(), filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte("MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	arn := k.key()
	var first []byte
	for i, c := range []config.Coordination{{KeysFile: file}, {KeysFile: file, KMSKeyARNs: []string{arn}}, {KMSKeyARNs: []string{arn}}} {
		ring, err := Keys(&config.Config{Instance: "a", AWS: config.AWS{Endpoint: k.url}, Coordination: c}, statetest.Join(t, memory, string(rune('a'+i))))
		if err != nil {
			t.Fatal(err)
		}
		key, err := ring.Key(t.Context(), keys.Session, nil)
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		if first == nil {
			first = key
		}
		if !bytes.Equal(first, key) {
			t.Errorf("step %d has another key", i)
		}
	}
}
