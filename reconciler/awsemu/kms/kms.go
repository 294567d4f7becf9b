// Package kms emulates the part of KMS that encrypts with symmetric keys.
package kms

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// Region is the KMS part of a region.
type Region struct {
	*world.Region `json:"-"`

	Keys    world.Table[*Key]   // by id
	Aliases world.Table[string] // key id by name
	Made    int
}

// Key is a symmetric encryption key.
type Key struct {
	ID          string
	Description string
	Material    []byte
	Disabled    bool
	Created     time.Time
}

// request is a call to the service.
type request = wire.Request[*Region]

// Service returns the part of KMS that encrypts with symmetric keys.
func Service() *wire.Service {
	return wire.NewService("kms", wire.JSONDialect("ValidationException"),
		wire.JSONOp("CreateKey", wire.Writes, createKey),
		wire.JSONOp("DescribeKey", wire.Reads, describeKey),
		wire.JSONOp("EnableKey", wire.Writes, func(rq *request, in keyInput) (any, error) { return setDisabled(rq, in, false) }),
		wire.JSONOp("DisableKey", wire.Writes, func(rq *request, in keyInput) (any, error) { return setDisabled(rq, in, true) }),
		wire.JSONOp("CreateAlias", wire.Writes, createAlias),
		wire.JSONOp("Encrypt", wire.Reads, encrypt),
		wire.JSONOp("Decrypt", wire.Reads, decrypt),
		wire.JSONOp("GenerateDataKey", wire.Reads, generateDataKey),
	)
}

// Join connects the region, which is new or was read from JSON, with the shared part of the region.
func (r *Region) Join(base *world.Region) { r.Region = base }

type createKeyInput struct {
	Description                    string
	KeyUsage                       string
	KeySpec                        string
	CustomerMasterKeySpec          string
	Origin                         string
	Policy                         string
	MultiRegion                    bool
	BypassPolicyLockoutSafetyCheck bool
	Tags                           []struct{ TagKey, TagValue string }
}

func createKey(rq *request, in createKeyInput) (any, error) {
	for name, rule := range map[string][2]string{
		"keyUsage": {in.KeyUsage, "ENCRYPT_DECRYPT"}, "keySpec": {in.KeySpec, "SYMMETRIC_DEFAULT"},
		"customerMasterKeySpec": {in.CustomerMasterKeySpec, "SYMMETRIC_DEFAULT"}, "origin": {in.Origin, "AWS_KMS"},
	} {
		if rule[0] != "" && rule[0] != rule[1] {
			return nil, wire.Fail("UnsupportedOperationException", "The emulator has %s %s only", name, rule[1])
		}
	}
	if in.MultiRegion {
		return nil, wire.Fail("UnsupportedOperationException", "The emulator has no multi-Region keys")
	}
	r := rq.Region
	r.Made++
	k := &Key{
		ID:          world.UUID(world.Hash("kms|"+r.Account+"|"+r.Name+"|"+wire.Decimal(int64(r.Made)), 32)),
		Description: in.Description, Material: make([]byte, 32), Created: r.Now(),
	}
	_, _ = rand.Read(k.Material) // never fails
	r.Keys.Put(k.ID, k)
	return map[string]any{"KeyMetadata": r.keyMetadata(k)}, nil
}

func (r *Region) keyMetadata(k *Key) map[string]any {
	state := "Enabled"
	if k.Disabled {
		state = "Disabled"
	}
	return map[string]any{
		"AWSAccountId": r.Account, "KeyId": k.ID, "Arn": r.keyARN(k), "CreationDate": wire.Epoch(k.Created), "Enabled": !k.Disabled,
		"Description": k.Description, "KeyUsage": "ENCRYPT_DECRYPT", "KeyState": state, "Origin": "AWS_KMS", "KeyManager": "CUSTOMER",
		"CustomerMasterKeySpec": "SYMMETRIC_DEFAULT", "KeySpec": "SYMMETRIC_DEFAULT", "EncryptionAlgorithms": []string{"SYMMETRIC_DEFAULT"}, "MultiRegion": false,
	}
}

func (r *Region) keyARN(k *Key) string { return r.ARN("kms", "key/"+k.ID) }

// missing returns KMS's error for a thing that does not exist. Its status is 400.
func missing(format string, args ...any) *wire.Error {
	e := wire.Fail("NotFoundException", format, args...)
	e.Status = http.StatusBadRequest
	return e
}

// FindKey finds a key by its id, its ARN, an alias or the ARN of an alias.
func (r *Region) FindKey(name string) (*Key, error) {
	id := name
	if strings.HasPrefix(name, "arn:") {
		parts := strings.SplitN(name, ":", 6)
		switch {
		case len(parts) != 6 || parts[2] != "kms" || !strings.HasPrefix(parts[5], "key/") && !strings.HasPrefix(parts[5], "alias/"):
			return nil, wire.Fail("InvalidArnException", "%s is not a valid ARN", name)
		case parts[3] != r.Name:
			return nil, missing("Invalid arn %s", parts[3])
		case parts[4] != r.Account:
			// The emulator cannot access keys of other accounts.
			return nil, wire.Fail("AccessDeniedException", "The ciphertext refers to a customer master key that does not exist, does not exist in this region, or you are not allowed to access.")
		}
		id = strings.TrimPrefix(parts[5], "key/")
	}
	if strings.HasPrefix(id, "alias/") {
		if !r.Aliases.Has(id) {
			return nil, missing("Alias %s is not found.", r.ARN("kms", id))
		}
		id = r.Aliases.Get(id)
	}
	k := r.Keys.Get(id)
	if k == nil {
		return nil, missing("Key '%s' does not exist", r.ARN("kms", "key/"+id))
	}
	return k, nil
}

// OfAnother reports whether a name is the ARN of another account's key, which the emulator cannot access.
func (r *Region) OfAnother(name string) bool {
	parts := strings.SplitN(name, ":", 6)
	return len(parts) == 6 && parts[0] == "arn" && parts[4] != r.Account
}

// usableKey is like FindKey, but refuses disabled keys.
func (r *Region) usableKey(name string) (*Key, error) {
	k, err := r.FindKey(name)
	if err == nil && k.Disabled {
		return nil, wire.Fail("DisabledException", "%s is disabled.", r.keyARN(k))
	}
	return k, err
}

type describeKeyInput struct {
	KeyID       string `json:"KeyId"`
	GrantTokens []string
}

func describeKey(rq *request, in describeKeyInput) (any, error) {
	k, err := rq.Region.FindKey(in.KeyID)
	if err != nil {
		return nil, err
	}
	return map[string]any{"KeyMetadata": rq.Region.keyMetadata(k)}, nil
}

type keyInput struct {
	KeyID string `json:"KeyId"`
}

func setDisabled(rq *request, in keyInput, disabled bool) (any, error) {
	if strings.Contains(in.KeyID, "alias/") {
		return nil, wire.Fail("InvalidArnException", "%s is not a key", in.KeyID)
	}
	k, err := rq.Region.FindKey(in.KeyID)
	if err != nil {
		return nil, err
	}
	k.Disabled = disabled
	return nil, nil
}

type createAliasInput struct {
	AliasName   string
	TargetKeyID string `json:"TargetKeyId"`
}

func createAlias(rq *request, in createAliasInput) (any, error) {
	st := rq.Region
	name, ok := strings.CutPrefix(in.AliasName, "alias/")
	if !ok || name == "" || len(in.AliasName) > 256 || !wire.ConsistsOf(name, wire.Alphanumeric+"/_-") {
		return nil, wire.Fail("ValidationException", "Alias must start with the prefix \"alias/\" and hold letters, digits and /_- alone")
	}
	if strings.HasPrefix(name, "aws/") {
		return nil, wire.Fail("NotAuthorizedException", "Aliases with the prefix alias/aws/ are those of AWS")
	}
	if st.Aliases.Has(in.AliasName) {
		return nil, wire.Fail("AlreadyExistsException", "An alias with the name %s already exists", rq.Region.ARN("kms", in.AliasName))
	}
	if strings.Contains(in.TargetKeyID, "alias/") {
		return nil, wire.Fail("ValidationException", "Aliases must refer to keys, not to aliases")
	}
	k, err := rq.Region.FindKey(in.TargetKeyID)
	if err != nil {
		return nil, err
	}
	st.Aliases.Put(in.AliasName, k.ID)
	return nil, nil
}

// seal encrypts data with an encryption context. The blob starts with the key's id.
func (k *Key) seal(plain []byte, context map[string]string) ([]byte, error) {
	gcm, err := k.cipher()
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, gcm.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	blob := append([]byte(k.ID), nonce...)
	return gcm.Seal(blob, nonce, plain, contextBytes(context)), nil
}

func (k *Key) cipher() (cipher.AEAD, error) {
	block, err := aes.NewCipher(k.Material)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// contextBytes returns a form of the context that does not depend on its order, to bind a blob to it.
func contextBytes(context map[string]string) []byte {
	text, err := json.Marshal(context) // sorted
	if err != nil || len(context) == 0 {
		return nil
	}
	sum := sha256.Sum256(text)
	return sum[:]
}

// open decrypts a blob. ok is false if the blob belongs to another key or context.
func (k *Key) open(blob []byte, context map[string]string) (plain []byte, ok bool) {
	gcm, err := k.cipher()
	rest, found := strings.CutPrefix(string(blob), k.ID)
	if err != nil || !found || len(rest) < gcm.NonceSize() {
		return nil, false
	}
	plain, err = gcm.Open(nil, []byte(rest[:gcm.NonceSize()]), []byte(rest[gcm.NonceSize():]), contextBytes(context))
	return plain, err == nil
}

// checkSymmetric refuses dry runs and parameters that only other kinds of keys have.
func checkSymmetric(rq *request, algorithm string, dryRun bool, context map[string]string) error {
	if algorithm != "" && algorithm != "SYMMETRIC_DEFAULT" {
		return wire.Fail("InvalidKeyUsageException", "The algorithm %s is not one of a symmetric key", algorithm)
	}
	for k, v := range context {
		if k == "" || !utf8.ValidString(k) || !utf8.ValidString(v) {
			return rq.Service.Dialect.BadParam("encryptionContext", "", "Map keys must have length greater than or equal to 1")
		}
	}
	if dryRun {
		e := wire.Fail("DryRunOperationException", "The request would have succeeded, but the DryRun option is set.")
		e.Status = http.StatusPreconditionFailed
		return e
	}
	return nil
}

type encryptInput struct {
	KeyID               string `json:"KeyId"`
	Plaintext           []byte
	EncryptionContext   map[string]string
	GrantTokens         []string
	EncryptionAlgorithm string
	DryRun              bool
}

func encrypt(rq *request, in encryptInput) (any, error) {
	k, err := rq.Region.usableKey(in.KeyID)
	if err == nil {
		err = checkSymmetric(rq, in.EncryptionAlgorithm, in.DryRun, in.EncryptionContext)
	}
	if err != nil {
		return nil, err
	}
	blob, err := k.seal(in.Plaintext, in.EncryptionContext)
	return map[string]any{"CiphertextBlob": blob, "KeyId": rq.Region.keyARN(k), "EncryptionAlgorithm": "SYMMETRIC_DEFAULT"}, err
}

type decryptInput struct {
	CiphertextBlob      []byte
	KeyID               string `json:"KeyId"`
	EncryptionContext   map[string]string
	GrantTokens         []string
	EncryptionAlgorithm string
	DryRun              bool
}

func decrypt(rq *request, in decryptInput) (any, error) {
	r := rq.Region
	invalid := &wire.Error{Code: "InvalidCiphertextException"}
	const idSize = 36
	if len(in.CiphertextBlob) < idSize {
		return nil, invalid
	}
	own := r.Keys.Get(string(in.CiphertextBlob[:idSize]))
	k := own
	if in.KeyID != "" {
		var err error
		if k, err = r.usableKey(in.KeyID); err != nil {
			return nil, err
		}
		if own != nil && own != k {
			return nil, wire.Fail("IncorrectKeyException", "The key ID in the request does not identify a CMK that can perform this operation.")
		}
	}
	if k == nil {
		return nil, invalid
	}
	if k.Disabled {
		return nil, wire.Fail("DisabledException", "%s is disabled.", r.keyARN(k))
	}
	if err := checkSymmetric(rq, in.EncryptionAlgorithm, in.DryRun, in.EncryptionContext); err != nil {
		return nil, err
	}
	plain, ok := k.open(in.CiphertextBlob, in.EncryptionContext)
	if !ok {
		return nil, invalid
	}
	return map[string]any{"KeyId": r.keyARN(k), "Plaintext": plain, "EncryptionAlgorithm": "SYMMETRIC_DEFAULT"}, nil
}

type generateDataKeyInput struct {
	KeyID             string `json:"KeyId"`
	KeySpec           string
	NumberOfBytes     *int
	EncryptionContext map[string]string
	GrantTokens       []string
	DryRun            bool
}

func generateDataKey(rq *request, in generateDataKeyInput) (any, error) {
	size := 0
	switch {
	case (in.KeySpec == "") == (in.NumberOfBytes == nil):
		return nil, wire.Fail("ValidationException", "Please specify either number of bytes or key spec.")
	case in.NumberOfBytes != nil:
		size = *in.NumberOfBytes
	default:
		size = map[string]int{"AES_128": 16, "AES_256": 32}[in.KeySpec]
	}
	k, err := rq.Region.usableKey(in.KeyID)
	if err == nil {
		err = checkSymmetric(rq, "", in.DryRun, in.EncryptionContext)
	}
	if err != nil {
		return nil, err
	}
	plain := make([]byte, size)
	_, _ = rand.Read(plain) // never fails
	blob, err := k.seal(plain, in.EncryptionContext)
	return map[string]any{"CiphertextBlob": blob, "Plaintext": plain, "KeyId": rq.Region.keyARN(k)}, err
}
