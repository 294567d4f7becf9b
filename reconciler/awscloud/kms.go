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

// KMSCalls contains the calls of KMS as functions, like the calls of other services.
type KMSCalls struct {
	Encrypt func(context.Context, *kms.EncryptInput, ...func(*kms.Options)) (*kms.EncryptOutput, error)
	Decrypt func(context.Context, *kms.DecryptInput, ...func(*kms.Options)) (*kms.DecryptOutput, error)
}

// KMS encrypts and decrypts small texts, such as data keys, with the credentials of an account. It reads and
// requests nothing before its first use. It is safe for concurrent use.
type KMS struct {
	o sdk.Options

	mu     sync.Mutex
	client *sdk.Client // nil before the first use
	calls  KMSCalls
}

// NewKMS returns a KMS. It uses the credentials, the endpoint and the observers of the options. The region
// is the region in each key's ARN.
func NewKMS(o sdk.Options) *KMS { return &KMS{o: o} }

// Decrypt decrypts a blob of at most 6 KiB that the key with the ARN encrypted with the same encryption
// context. Its error is an *observed.Error.
func (k *KMS) Decrypt(ctx context.Context, keyARN string, blob []byte, encryptionContext map[string]string) ([]byte, error) {
	calls, in, err := k.reach(ctx, "Decrypt", keyARN)
	if err != nil {
		return nil, err
	}
	out, err := calls.Decrypt(ctx, &kms.DecryptInput{KeyId: aws.String(keyARN), CiphertextBlob: blob, EncryptionContext: encryptionContext}, in)
	if err != nil {
		return nil, sdk.Classify("kms", "Decrypt", err)
	}
	return out.Plaintext, nil
}

// Encrypt encrypts a text of at most 4 KiB with the key with the ARN, for Decrypt.
func (k *KMS) Encrypt(ctx context.Context, keyARN string, plain []byte, encryptionContext map[string]string) ([]byte, error) {
	calls, in, err := k.reach(ctx, "Encrypt", keyARN)
	if err != nil {
		return nil, err
	}
	out, err := calls.Encrypt(ctx, &kms.EncryptInput{KeyId: aws.String(keyARN), Plaintext: plain, EncryptionContext: encryptionContext}, in)
	if err != nil {
		return nil, sdk.Classify("kms", "Encrypt", err)
	}
	return out.CiphertextBlob, nil
}

// reach returns the calls for a key, and an option that sets its region.
func (k *KMS) reach(ctx context.Context, operation, keyARN string) (KMSCalls, func(*kms.Options), error) {
	parts := strings.SplitN(keyARN, ":", 6)
	if len(parts) < 6 || parts[2] != "kms" || parts[3] == "" {
		return KMSCalls{}, nil, &observed.Error{Kind: observed.Invalid, Service: "kms", Operation: operation, Code: "InvalidArn", Message: fmt.Sprintf("%q is not the ARN of a key", keyARN)}
	}
	calls, err := k.open(ctx, parts[3])
	return calls, func(o *kms.Options) { o.Region = parts[3] }, err
}

// open reads the SDK's configuration, until it succeeds once.
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
	of := kms.NewFromConfig(client.Config, func(o *kms.Options) { sdk.Reach(&o.BaseEndpoint, client.Endpoint) })
	k.calls = KMSCalls{Encrypt: of.Encrypt, Decrypt: of.Decrypt}
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
