package cloudtest

import (
	"bytes"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/weir-gitops/weir/reconciler/awscloud"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
)

func kmsContracts() []contract {
	return []contract{
		{"a blob decrypts under its context alone", nil, kmsContext},
		{"a data key comes plain and encrypted", nil, kmsDataKey},
		{"a key is named by its id, its ARN or an alias", nil, kmsNames},
		{"what is not there or disabled is refused", []Capability{KMSRefusals}, kmsRefusals},
		{"the adapter encrypts and decrypts by ARN", nil, kmsAdapter},
	}
}

// key creates a key.
func (e *env) key(c *kms.Client) *types.KeyMetadata {
	e.Helper()
	out, err := c.CreateKey(e.ctx, &kms.CreateKeyInput{Description: aws.String(e.name("key"))})
	e.must(err)
	return out.KeyMetadata
}

func (e *env) kms() *kms.Client { return kms.NewFromConfig(e.cfg) }

func kmsContext(e *env) {
	c := e.kms()
	k := e.key(c)
	context := map[string]string{"app": "web", "env": e.mark}
	enc, err := c.Encrypt(e.ctx, &kms.EncryptInput{KeyId: k.KeyId, Plaintext: []byte("text"), EncryptionContext: context})
	e.must(err)
	if bytes.Contains(enc.CiphertextBlob, []byte("text")) {
		e.Error("the blob shows what it holds")
	}
	dec, err := c.Decrypt(e.ctx, &kms.DecryptInput{CiphertextBlob: enc.CiphertextBlob, EncryptionContext: map[string]string{"env": e.mark, "app": "web"}})
	e.must(err)
	e.equal("text", "text", string(dec.Plaintext))
	e.equal("key", aws.ToString(k.Arn), aws.ToString(dec.KeyId))
	for _, wrong := range []map[string]string{nil, {"app": "web"}, {"app": "web", "env": "other"}} {
		_, err = c.Decrypt(e.ctx, &kms.DecryptInput{CiphertextBlob: enc.CiphertextBlob, EncryptionContext: wrong})
		e.refused(err, "InvalidCiphertextException")
	}
}

func kmsDataKey(e *env) {
	c := e.kms()
	k := e.key(c)
	out, err := c.GenerateDataKey(e.ctx, &kms.GenerateDataKeyInput{KeyId: k.Arn, KeySpec: types.DataKeySpecAes256})
	e.must(err)
	dec, err := c.Decrypt(e.ctx, &kms.DecryptInput{CiphertextBlob: out.CiphertextBlob, KeyId: k.Arn})
	e.must(err)
	if len(out.Plaintext) != 32 || !bytes.Equal(out.Plaintext, dec.Plaintext) {
		e.Errorf("a data key of %d bytes decrypts to %d others", len(out.Plaintext), len(dec.Plaintext))
	}
	_, err = c.GenerateDataKey(e.ctx, &kms.GenerateDataKeyInput{KeyId: k.Arn})
	e.refused(err, "ValidationException")
}

func kmsNames(e *env) {
	c := e.kms()
	k := e.key(c)
	alias := "alias/" + e.name("key")
	_, err := c.CreateAlias(e.ctx, &kms.CreateAliasInput{AliasName: aws.String(alias), TargetKeyId: k.KeyId})
	e.must(err)
	for _, name := range []string{aws.ToString(k.KeyId), aws.ToString(k.Arn), alias} {
		out, err := c.DescribeKey(e.ctx, &kms.DescribeKeyInput{KeyId: aws.String(name)})
		e.must(err)
		e.equal(name, aws.ToString(k.Arn), aws.ToString(out.KeyMetadata.Arn))
	}
	_, err = c.CreateAlias(e.ctx, &kms.CreateAliasInput{AliasName: aws.String(alias), TargetKeyId: k.KeyId})
	e.refused(err, "AlreadyExistsException")
	_, err = c.DescribeKey(e.ctx, &kms.DescribeKeyInput{KeyId: aws.String(alias + "-none")})
	e.refused(err, "NotFoundException")
}

func kmsRefusals(e *env) {
	c := e.kms()
	k, other := e.key(c), e.key(c)
	enc, err := c.Encrypt(e.ctx, &kms.EncryptInput{KeyId: k.KeyId, Plaintext: []byte("text")})
	e.must(err)
	_, err = c.Decrypt(e.ctx, &kms.DecryptInput{CiphertextBlob: enc.CiphertextBlob, KeyId: other.Arn})
	e.refused(err, "IncorrectKeyException")
	_, err = c.Decrypt(e.ctx, &kms.DecryptInput{CiphertextBlob: []byte("no blob of any key")})
	e.refused(err, "InvalidCiphertextException")
	_, err = c.Encrypt(e.ctx, &kms.EncryptInput{KeyId: aws.String("00000000-0000-4000-a000-000000000000"), Plaintext: []byte("text")})
	e.refused(err, "NotFoundException")
	_, err = c.DisableKey(e.ctx, &kms.DisableKeyInput{KeyId: k.KeyId})
	e.must(err)
	_, err = c.Decrypt(e.ctx, &kms.DecryptInput{CiphertextBlob: enc.CiphertextBlob})
	e.refused(err, "DisabledException")
	_, err = c.EnableKey(e.ctx, &kms.EnableKeyInput{KeyId: k.KeyId})
	e.must(err)
	_, err = c.Decrypt(e.ctx, &kms.DecryptInput{CiphertextBlob: enc.CiphertextBlob})
	e.must(err)
}

func kmsAdapter(e *env) {
	c := e.kms()
	k := e.key(c)
	context := map[string]string{"app": "web"}
	enc, err := c.Encrypt(e.ctx, &kms.EncryptInput{KeyId: k.KeyId, Plaintext: []byte("text"), EncryptionContext: context})
	e.must(err)
	calls := 0
	// No region is set: the ARN's region applies.
	adapter := awscloud.NewKMS(sdk.Options{EndpointURL: e.h.Endpoint, Embedded: !e.h.Environment, OnCall: func(sdk.CallInfo) { calls++ }})
	e.Cleanup(adapter.Close)
	plain, err := adapter.Decrypt(e.ctx, aws.ToString(k.Arn), enc.CiphertextBlob, context)
	e.must(err)
	e.equal("text", "text", string(plain))
	blob, err := adapter.Encrypt(e.ctx, aws.ToString(k.Arn), []byte("another"), context)
	e.must(err)
	plain, err = adapter.Decrypt(e.ctx, aws.ToString(k.Arn), blob, context)
	e.must(err)
	e.equal("text", "another", string(plain))
	if _, err := adapter.Encrypt(e.ctx, "alias/x", nil, nil); err == nil {
		e.Error("what is not an ARN encrypts")
	}
	if _, err := adapter.Decrypt(e.ctx, aws.ToString(k.Arn), enc.CiphertextBlob, nil); err == nil {
		e.Error("a wrong context decrypts")
	}
	if _, err := adapter.Decrypt(e.ctx, "alias/x", enc.CiphertextBlob, nil); err == nil {
		e.Error("what is not an ARN decrypts")
	}
	e.equal("calls", 4, calls)
}
