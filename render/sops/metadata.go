package sops

import (
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// metadata is SOPS's metadata in an encrypted file.
type metadata struct {
	LastModified     string
	MAC              string
	MACOnlyEncrypted bool
	// Groups are the key groups. A key of each needed group decrypts a part of the data key. Nearly always
	// there is a single group, which decrypts the whole key.
	Groups    [][]masterKey
	Threshold int

	line, macLine int

	unencryptedSuffix, encryptedSuffix string
	unencrypted, encrypted             *regexp.Regexp
	byComment                          bool
}

// rules caches compiled regular expressions, because most files have the same ones.
var rules struct {
	sync.Mutex
	by map[string]*regexp.Regexp
}

// keptRules bounds the cached rules.
const keptRules = 100

// rule compiles a regular expression of the metadata, or returns the cached one.
func rule(text string) (*regexp.Regexp, error) {
	rules.Lock()
	defer rules.Unlock()
	if r := rules.by[text]; r != nil {
		return r, nil
	}
	r, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	if len(rules.by) >= keptRules || rules.by == nil {
		rules.by = map[string]*regexp.Regexp{}
	}
	rules.by[text] = r
	return r, nil
}

// masterKey is a key that encrypted the data key.
type masterKey struct {
	kind    string // age, kms, or one of another service
	name    string // the recipient, the ARN, or another service's name of the key
	data    []byte // the encrypted data key
	context map[string]string
}

// others are the key services in files that weir does not support.
var others = map[string]string{
	"pgp": "PGP", "gcp_kms": "Google Cloud KMS", "hckms": "Huawei Cloud KMS", "azure_kv": "Azure Key Vault", "hc_vault": "HashiCorp Vault",
}

// readMetadata decodes the member sops of a file, which is a mapping of strings, numbers, lists and mappings.
// In formats without types, all values are strings.
func readMetadata(raw map[string]any) (*metadata, error) {
	m := &metadata{
		LastModified: str(raw["lastmodified"]), MAC: str(raw["mac"]),
		unencryptedSuffix: str(raw["unencrypted_suffix"]), encryptedSuffix: str(raw["encrypted_suffix"]),
		byComment: str(raw["unencrypted_comment_regex"])+str(raw["encrypted_comment_regex"]) != "",
	}
	m.MACOnlyEncrypted = strings.EqualFold(str(raw["mac_only_encrypted"]), "true")
	m.Threshold, _ = strconv.Atoi(str(raw["shamir_threshold"])) // 0 if absent
	var err error
	for name, to := range map[string]**regexp.Regexp{"unencrypted_regex": &m.unencrypted, "encrypted_regex": &m.encrypted} {
		if text := str(raw[name]); text != "" {
			if *to, err = rule(text); err != nil {
				return nil, fmt.Errorf("sops.%s is not a regular expression", name)
			}
		}
	}
	groups, _ := raw["key_groups"].([]any)
	if len(groups) == 0 {
		groups = []any{raw}
	}
	for _, g := range groups {
		group, ok := g.(map[string]any)
		if !ok {
			return nil, errors.New("sops.key_groups is not a list of mappings")
		}
		keys, err := readKeys(group)
		if err != nil {
			return nil, err
		}
		m.Groups = append(m.Groups, keys)
	}
	if len(m.Groups) > 255 {
		return nil, errors.New("sops.key_groups has more than 255 groups")
	}
	if m.Threshold <= 0 || m.Threshold > len(m.Groups) {
		m.Threshold = len(m.Groups)
	}
	return m, nil
}

// readKeys returns the master keys of a key group, age keys first, because they need no request. Keys of
// services that weir does not support come last, and have only the name of the service, for messages.
func readKeys(group map[string]any) ([]masterKey, error) {
	var out []masterKey
	each := func(kind string, read func(entry map[string]any) (masterKey, error)) error {
		list, _ := group[kind].([]any)
		for _, e := range list {
			entry, ok := e.(map[string]any)
			if !ok {
				return fmt.Errorf("sops.%s is not a list of mappings", kind)
			}
			key, err := read(entry)
			if err != nil {
				return err
			}
			key.kind = kind
			out = append(out, key)
		}
		return nil
	}
	err := errors.Join(
		each("age", func(e map[string]any) (masterKey, error) {
			return masterKey{name: str(e["recipient"]), data: []byte(str(e["enc"]))}, nil
		}),
		each("kms", func(e map[string]any) (masterKey, error) {
			data, err := base64.StdEncoding.DecodeString(str(e["enc"]))
			if err != nil {
				return masterKey{}, errors.New("sops.kms.enc is not base64")
			}
			key := masterKey{name: str(e["arn"]), data: data, context: map[string]string{}}
			context, _ := e["context"].(map[string]any)
			for k, v := range context {
				key.context[k] = str(v)
			}
			return key, nil
		}),
	)
	for kind, service := range others {
		err = errors.Join(err, each(kind, func(map[string]any) (masterKey, error) { return masterKey{name: service}, nil }))
	}
	slices.SortStableFunc(out, func(a, b masterKey) int { return rank(a.kind) - rank(b.kind) })
	return out, err
}

// rank sorts keys that need no request first.
func rank(kind string) int { return slices.Index([]string{"kms", "age"}, kind) * -1 }

func str(v any) string {
	if v == nil {
		return ""
	}
	if s, ok := v.(string); ok {
		return s
	}
	return fmt.Sprint(v)
}

// encrypts reports whether the value at a path was encrypted, according to the file's encryption rule. If
// comments decide, it checks the value itself; a wrong answer would fail the MAC.
func (m *metadata) encrypts(path []string, v any) bool {
	if m.byComment {
		text, ok := v.(string)
		return ok && sealed.MatchString(text)
	}
	has := func(test func(string) bool) bool { return slices.ContainsFunc(path, test) }
	encrypted := true
	if m.unencryptedSuffix != "" {
		encrypted = !has(func(s string) bool { return strings.HasSuffix(s, m.unencryptedSuffix) })
	}
	if m.encryptedSuffix != "" {
		encrypted = has(func(s string) bool { return strings.HasSuffix(s, m.encryptedSuffix) })
	}
	if m.unencrypted != nil && has(m.unencrypted.MatchString) {
		encrypted = false
	}
	if m.encrypted != nil {
		encrypted = has(m.encrypted.MatchString)
	}
	return encrypted
}
