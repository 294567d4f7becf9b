package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-gitops/weir/reconciler/awscloud"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/state/keys"
)

// kmsKey is a cipher with a key of AWS KMS. Requests use the daemon's own credentials. The encryption
// context identifies the encrypted value, so that a policy can permit an instance only its own keys, and
// CloudTrail shows which keys were used.
type kmsKey struct{ arn, endpoint string }

var _ keys.Cipher = kmsKey{}

// Encrypt implements keys.Cipher.
func (k kmsKey) Encrypt(ctx context.Context, plain []byte, about map[string]string) ([]byte, error) {
	return k.call(ctx, (*awscloud.KMS).Encrypt, plain, about)
}

// Decrypt implements keys.Cipher.
func (k kmsKey) Decrypt(ctx context.Context, sealed []byte, about map[string]string) ([]byte, error) {
	return k.call(ctx, (*awscloud.KMS).Decrypt, sealed, about)
}

// call makes one KMS request. It returns keys.ErrOther if the text was encrypted with another key.
func (k kmsKey) call(ctx context.Context, do func(*awscloud.KMS, context.Context, string, []byte, map[string]string) ([]byte, error), text []byte, about map[string]string) ([]byte, error) {
	client := awscloud.NewKMS(sdk.Options{EndpointURL: k.endpoint}) // it is used only when a daemon starts
	defer client.Close()
	out, err := do(client, ctx, k.arn, text, about)
	var e *observed.Error
	switch {
	case err == nil:
		return out, nil
	case errors.As(err, &e) && (e.Code == "InvalidCiphertextException" || e.Code == "IncorrectKeyException"):
		return nil, keys.ErrOther
	case e != nil && e.Kind == observed.Denied:
		return nil, fmt.Errorf("KMS key %s: %w (weir policy --daemon prints the statement; the key policy must also allow IAM policies of the account to grant access)", k.arn, err)
	}
	return nil, fmt.Errorf("KMS key %s: %w", k.arn, err)
}
