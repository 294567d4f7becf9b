// Command make writes the test vectors of package sops with the SOPS library itself: it encrypts
// each file of plain text in the given directory, and writes the library's decryption next to the
// encrypted file. Every run makes new age keys in the same directory: they protect nothing.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/getsops/sops/v3"
	"github.com/getsops/sops/v3/aes"
	sopsage "github.com/getsops/sops/v3/age"
	"github.com/getsops/sops/v3/cmd/sops/common"
	"github.com/getsops/sops/v3/config"
	"github.com/getsops/sops/v3/keyservice"
	"github.com/getsops/sops/v3/stores/dotenv"
	"github.com/getsops/sops/v3/stores/ini"
	sopsjson "github.com/getsops/sops/v3/stores/json"
	"github.com/getsops/sops/v3/stores/yaml"
	"github.com/getsops/sops/v3/version"
)

const object = `# A comment that is encrypted.
apiVersion: v1
kind: Secret
metadata:
    name: bootstrap # inline
    labels:
        app: web
type: Opaque
stringData:
    value: |
        #!/bin/bash
        echo "vector-secret: \"quoted\" and ünïcode é"
    empty: ""
    tab: "a\tb\\c"
    null_value: null
data:
    password: dmVjdG9yLXBhc3N3b3Jk
---
apiVersion: v1
kind: ConfigMap
metadata:
    name: second
data:
    key: vector-second
    # A comment in a list's mapping.
    list:
        - vector-item-one
        # between items
        - nested:
            - 7
            - 1.5
            - 2e+20
            - true
            - false
            - 2024-05-06T07:08:09Z
`

type vector struct {
	name, plain string
	meta        func(m *sops.Metadata)
	groups      int
}

func main() {
	out := os.Args[1]
	var keys []*age.X25519Identity
	text := "# THROW-AWAY test keys, made for these vectors alone. They protect nothing.\n"
	for range 3 {
		k, err := age.GenerateX25519Identity()
		must(err)
		keys = append(keys, k)
		text += k.String() + "\n"
	}
	write(filepath.Join(out, "throwaway-age-keys.txt"), text)
	regex := func(m *sops.Metadata) { m.EncryptedRegex = "^(data|stringData)$" }
	for _, v := range []vector{
		{"whole.yaml", object, nil, 1},
		{"regex.yaml", object, regex, 1},
		{"maconly.yaml", object, func(m *sops.Metadata) { regex(m); m.MACOnlyEncrypted = true }, 1},
		{"unencregex.yaml", object, func(m *sops.Metadata) { m.UnencryptedRegex = "^(apiVersion|kind|metadata)$" }, 1},
		{"suffix.yaml", "a_plain: visible-one\nb: vector-hidden\nc:\n    d_plain:\n        - visible-two\n", func(m *sops.Metadata) { m.UnencryptedSuffix = "_plain" }, 1},
		{"encsuffix.yaml", "a_enc: vector-hidden\nb: visible-one\n", func(m *sops.Metadata) { m.EncryptedSuffix = "_enc" }, 1},
		{"bycomment.yaml", "# sops:enc\na: vector-hidden\nb: visible-one\n", func(m *sops.Metadata) { m.EncryptedCommentRegex = "sops:enc" }, 1},
		{"groups.yaml", "a: vector-hidden\n", func(m *sops.Metadata) { m.ShamirThreshold = 2 }, 3},
		{"object.json", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"j"},"stringData":{"a":"vector-json <&> \u20ac","n":"x"},"n":3,"f":1.25,"b":true,"z":null,"list":["vector-item",{"k":"vector-deep"}]}`, nil, 1},
		{"values.env", "# a comment\nPASSWORD=vector-env\nMULTI=one\\ntwo\nEMPTY=\nURL=https://u:vector-pw@h/?a=b\n", nil, 1},
		{"envgroups.env", "PASSWORD=vector-env\n", func(m *sops.Metadata) { m.ShamirThreshold = 2 }, 2},
		{"binary.key", "-----BEGIN KEY-----\nvector\x01\x7f\tkey\n-----END KEY-----\n", nil, 1},
		{"values.ini", "[a]\nb = vector-ini\n", nil, 1},
	} {
		make1(out, v, keys)
	}
}

type store interface {
	sops.EncryptedFileLoader
	sops.EncryptedFileEmitter
	sops.PlainFileEmitter
	sops.PlainFileLoader
}

func storeOf(name string) store {
	switch filepath.Ext(name) {
	case ".yaml":
		return yaml.NewStore(&config.YAMLStoreConfig{})
	case ".json":
		return sopsjson.NewStore(&config.JSONStoreConfig{})
	case ".env":
		return dotenv.NewStore(&config.DotenvStoreConfig{})
	case ".ini":
		return ini.NewStore(&config.INIStoreConfig{})
	}
	return sopsjson.NewBinaryStore(&config.JSONBinaryStoreConfig{})
}

func make1(out string, v vector, keys []*age.X25519Identity) {
	s := storeOf(v.name)
	branches, err := s.LoadPlainFile([]byte(v.plain))
	must(err)
	tree := sops.Tree{Branches: branches, Metadata: sops.Metadata{Version: version.Version}}
	for i := range v.groups {
		key, err := sopsage.MasterKeyFromRecipient(keys[i].Recipient().String())
		must(err)
		tree.Metadata.KeyGroups = append(tree.Metadata.KeyGroups, sops.KeyGroup{key})
	}
	if v.meta != nil {
		v.meta(&tree.Metadata)
	}
	dataKey, errs := tree.GenerateDataKeyWithKeyServices([]keyservice.KeyServiceClient{keyservice.NewLocalClient()})
	if len(errs) > 0 {
		panic(fmt.Sprint(errs))
	}
	must(common.EncryptTree(common.EncryptTreeOpts{DataKey: dataKey, Tree: &tree, Cipher: aes.NewCipher()}))
	enc, err := s.EmitEncryptedFile(tree)
	must(err)
	write(filepath.Join(out, v.name), string(enc))

	again, err := s.LoadEncryptedFile(enc)
	must(err)
	again.Metadata.DataKey = dataKey
	mac, err := again.Decrypt(dataKey, aes.NewCipher())
	must(err)
	saved, err := aes.NewCipher().Decrypt(again.Metadata.MessageAuthenticationCode, dataKey, again.Metadata.LastModified.Format(time.RFC3339))
	must(err)
	if saved != mac {
		panic("MAC of " + v.name)
	}
	plain, err := s.EmitPlainFile(again.Branches)
	must(err)
	write(filepath.Join(out, v.name+".plain"), string(plain))
}

func write(name, text string) {
	if strings.HasSuffix(name, ".json") && !json.Valid([]byte(text)) {
		panic(name)
	}
	must(os.WriteFile(name, []byte(text), 0o644))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
