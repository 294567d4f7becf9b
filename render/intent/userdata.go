package intent

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
)

// UserDataLimit is the largest user data that EC2 takes, in bytes before base64.
const UserDataLimit = 16384

// plainLimit bounds the unpacked bytes: user data of 16 KiB can hold a thousand times its size.
const plainLimit = 4 << 20

// UserData is bootstrap data before base64. Text may hold placeholders, which
// the answer to Cluster fills.
type UserData struct {
	Text string `json:"-"`
	// Format is cloud-config, ignition, mime, toml, shell or powershell.
	Format string `json:"format,omitempty"`
	// Merged says that EKS reads the text and adds its own, as it does for a
	// nodegroup whose image it chooses.
	Merged bool `json:"merged,omitempty"`
	// Cluster is set where Text holds placeholders.
	Cluster Lookup `json:"cluster,omitzero"`
	// FetchesToken says that the machine fetches its join token from a parameter
	// that weir keeps. Text then holds the placeholders of the parameter's name
	// and its region.
	FetchesToken bool `json:"fetchesToken,omitempty"`
	// Secret says that Text holds a secret, such as a join token.
	Secret bool `json:"secret,omitempty"`
	// Mark stands for how Text was made, where it holds decrypted values or secret
	// variables: texts with equal marks are equal where their secrets are. Anybody may
	// know it. It is empty where Text holds no such secret.
	Mark string `json:"-"`
	// Concealed says that a plan shows no parts of Text: it replaces a text that contains secrets,
	// so the parts would confirm a guess of one of its lines.
	Concealed bool `json:"-"`
	// AnySize says that nothing is refused because of the size of Text, which would reveal the
	// length of its secrets: the plan is of a pull request.
	AnySize bool `json:"-"`
}

// Placeholders in UserData.Text. They start and end with a NUL byte, which YAML
// cannot hold, so no manifest can contain one.
const (
	PlaceholderEndpoint    = "\x00weir:apiServerEndpoint\x00"
	PlaceholderCA          = "\x00weir:certificateAuthority\x00"
	PlaceholderServiceCIDR = "\x00weir:serviceCIDR\x00"
	// These are filled from the policy of the target.
	PlaceholderJoinParameter = "\x00weir:joinParameter\x00"
	PlaceholderRegion        = "\x00weir:region\x00"
)

// Encode returns the bytes that EC2 is sent for text, which is u.Text with its
// placeholders filled: the text itself, or compressed where it is too long and
// its reader unpacks it, which cloud-init and nodeadm do. Ignition, Bottlerocket
// and Windows do not, nor does EKS. tooLarge is empty if they are within
// UserDataLimit; else it says by how much they are not, without quoting them.
func (u UserData) Encode(text string) (raw []byte, tooLarge string) {
	if len(text) <= UserDataLimit {
		return []byte(text), ""
	}
	summary := fmt.Sprintf("the user data has %d bytes", len(text))
	if !u.Merged && (u.Format == "cloud-config" || u.Format == "mime" || u.Format == "shell") {
		if raw = compress(text); len(raw) <= UserDataLimit {
			return raw, ""
		}
		summary += fmt.Sprintf(", and %d compressed", len(raw))
	}
	return nil, fmt.Sprintf("%s; EC2 takes %d", summary, UserDataLimit)
}

// DecodeUserData undoes Encode. Bytes that are no sound gzip, or too much of
// it, are returned as they are.
func DecodeUserData(raw []byte) string {
	if !bytes.HasPrefix(raw, []byte("\x1f\x8b")) {
		return string(raw)
	}
	r, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return string(raw)
	}
	plain, err := io.ReadAll(io.LimitReader(r, plainLimit+1))
	if err != nil || len(plain) > plainLimit {
		return string(raw)
	}
	return string(plain)
}

// compress writes gzip without a name or a time. Another version of the
// compressor may give other bytes for the same text, so nothing may be decided
// by them: compare what DecodeUserData gives.
func compress(text string) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic("compress into memory: " + err.Error())
	}
	return b.Bytes()
}
