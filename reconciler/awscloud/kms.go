package awscloud

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// KMSCalls are the calls of KMS, held as functions as the other services' are.
type KMSCalls struct {
	Decrypt func(context.Context, *kms.DecryptInput, ...func(*kms.Options)) (*kms.DecryptOutput, error)
}

// KMS decrypts data keys with the credentials of an account. Nothing is read or
// asked before the first use. It is safe for concurrent use.
type KMS struct {
	o sdk.Options

	mu     sync.Mutex
	client *sdk.Client // nil before the first use
	calls  KMSCalls
}

// NewKMS returns a KMS. Of the options it takes the credentials, the endpoint and
// the observers; the region is that of each key's ARN.
func NewKMS(o sdk.Options) *KMS { return &KMS{o: o} }

// Decrypt decrypts a blob of at most 6 KiB that the key with an ARN has encrypted
// under an encryption context. Its error is an *observed.Error.
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
		return nil, sdk.Classify("kms", "Decrypt", err)
	}
	return out.Plaintext, nil
}

// open reads the SDK's configuration, once it succeeds.
func (k *KMS) open(ctx context.Context, region string) (KMSCalls, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.client != nil {
		return k.calls, nil
	}
	o := k.o
	if o.Region == "" {
		o.Region = region
	}
	client, err := sdk.Load(ctx, o)
	if err != nil {
		return KMSCalls{}, err
	}
	k.client = client
	k.calls.Decrypt = kms.NewFromConfig(client.Config, func(o *kms.Options) { sdk.Reach(&o.BaseEndpoint, client.Endpoint) }).Decrypt
	return k.calls, nil
}

// Close closes idle connections.
func (k *KMS) Close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.client != nil {
		k.client.Close()
	}
}
