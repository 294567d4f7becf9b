package awscloud

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/weir-gitops/weir/reconciler/observed"
)

type kmsCalls struct {
	Decrypt call[kms.DecryptInput, kms.DecryptOutput, kms.Options]
}

// KMS decrypts data keys with the credentials of an account. Nothing is read or
// asked before the first use. It is safe for concurrent use.
type KMS struct {
	o Options

	mu    sync.Mutex
	cloud *Cloud // its transport and counters; nil before the first use
	calls kmsCalls
}

// NewKMS returns a KMS. Of the options it takes the credentials, the endpoint and
// the observers; the region is that of each key's ARN.
func NewKMS(o Options) *KMS { return &KMS{o: o} }

// Decrypt decrypts a blob of at most 6 KiB that the key with an ARN has encrypted
// under an encryption context. Its error is a *plan.Error.
func (k *KMS) Decrypt(ctx context.Context, keyARN string, blob []byte, encryptionContext map[string]string) ([]byte, error) {
	parts := strings.SplitN(keyARN, ":", 6)
	if len(parts) < 6 || parts[2] != "kms" || parts[3] == "" {
		return nil, &observed.Error{Kind: observed.Invalid, Service: "kms", Operation: "Decrypt", Code: "InvalidArn", Message: fmt.Sprintf("%q is not the ARN of a key", keyARN)}
	}
	calls, err := k.open(ctx, parts[3])
	if err != nil {
		return nil, err
	}
	out, err := calls.Decrypt(ctx, &kms.DecryptInput{KeyId: aws.String(keyARN), CiphertextBlob: blob, EncryptionContext: encryptionContext},
		func(o *kms.Options) { o.Region = parts[3] })
	if err != nil {
		return nil, classify("kms", "Decrypt", err)
	}
	return out.Plaintext, nil
}

// open reads the SDK's configuration, once it succeeds.
func (k *KMS) open(ctx context.Context, region string) (kmsCalls, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cloud != nil {
		return k.calls, nil
	}
	o := k.o
	if o.Region == "" {
		o.Region = region
	}
	c := &Cloud{region: o.Region, logger: o.Logger, now: time.Now, calls: newCallCounter(o.OnCall)}
	if c.logger == nil {
		c.logger = slog.New(slog.DiscardHandler)
	}
	cfg, err := loadConfig(ctx, o, c)
	if err != nil {
		return kmsCalls{}, err
	}
	client := kms.NewFromConfig(cfg, func(ko *kms.Options) {
		if o.EndpointURL != "" {
			ko.BaseEndpoint = aws.String(o.EndpointURL)
		}
	})
	k.cloud, k.calls = c, kmsCalls{Decrypt: client.Decrypt}
	return k.calls, nil
}

// Close lets go of idle connections.
func (k *KMS) Close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cloud != nil {
		k.cloud.Close()
	}
}
