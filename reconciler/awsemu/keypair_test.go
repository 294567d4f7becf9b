package awsemu_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

// sshKey is a public key as OpenSSH writes it.
func sshKey(kind string, parts ...[]byte) []byte {
	var blob []byte
	for _, p := range append([][]byte{[]byte(kind)}, parts...) {
		blob = append(binary.BigEndian.AppendUint32(blob, uint32(len(p))), p...)
	}
	return []byte(kind + " " + base64.StdEncoding.EncodeToString(blob) + " me@here\n")
}

func TestKeyPairs(t *testing.T) {
	c := start(t, awsemu.Options{}).ec2()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	add := func(name string, material []byte) (*ec2.ImportKeyPairOutput, error) {
		return c.ImportKeyPair(t.Context(), &ec2.ImportKeyPairInput{KeyName: aws.String(name), PublicKeyMaterial: material,
			TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeKeyPair, Tags: []types.Tag{{Key: aws.String("team"), Value: aws.String("a")}}}}})
	}
	first, err := add("a", sshKey("ssh-ed25519", make([]byte, 32)))
	if err != nil || aws.ToString(first.KeyFingerprint) == "" || !strings.HasPrefix(aws.ToString(first.KeyPairId), "key-") {
		t.Fatalf("import: %+v, %v", first, err)
	}
	second, err := add("b", sshKey("ssh-rsa", []byte{1, 0, 1}, append([]byte{0}, key.N.Bytes()...)))
	if err != nil || len(aws.ToString(second.KeyFingerprint)) != 47 {
		t.Fatalf("import: %+v, %v", second, err)
	}
	_, err = add("a", sshKey("ssh-ed25519", make([]byte, 32)))
	wantCode(t, err, "InvalidKeyPair.Duplicate")
	for _, bad := range [][]byte{[]byte("ssh-rsa"), []byte("ssh-rsa !!"), sshKey("ssh-dss", []byte{1}), sshKey("ssh-ed25519", []byte{1}), sshKey("ssh-ed25519", make([]byte, 32))[:30]} {
		_, err = add("c", bad)
		wantCode(t, err, "InvalidKey.Format")
	}
	out, err := c.DescribeKeyPairs(t.Context(), &ec2.DescribeKeyPairsInput{Filters: []types.Filter{{Name: aws.String("tag:team"), Values: []string{"a"}}}})
	if err != nil || len(out.KeyPairs) != 2 {
		t.Fatalf("describe: %+v, %v", out, err)
	}
	_, err = c.DescribeKeyPairs(t.Context(), &ec2.DescribeKeyPairsInput{KeyNames: []string{"c"}})
	wantCode(t, err, "InvalidKeyPair.NotFound")
	for range 2 {
		if _, err := c.DeleteKeyPair(t.Context(), &ec2.DeleteKeyPairInput{KeyName: aws.String("a")}); err != nil {
			t.Fatal(err)
		}
	}
	out, err = c.DescribeKeyPairs(t.Context(), &ec2.DescribeKeyPairsInput{})
	if err != nil || len(out.KeyPairs) != 1 || aws.ToString(out.KeyPairs[0].KeyName) != "b" || out.KeyPairs[0].KeyType != types.KeyTypeRsa {
		t.Errorf("what is left: %+v, %v", out, err)
	}
}
