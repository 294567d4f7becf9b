package targetspec

import "testing"

func TestAnEndpointHasOneSpelling(t *testing.T) {
	t.Parallel()
	const one = "https://aws.example.com"
	for _, same := range []string{one, one + "/", "https://AWS.Example.com", one + ":443", "HTTPS://aws.example.com:443//"} {
		if got := Endpoint(same); got != one {
			t.Errorf("%s is %s", same, got)
		}
	}
	for _, other := range []string{"", "http://aws.example.com", one + ":8443", one + "/a", one + "/A", "http://[::1]:4566", "http://127.0.0.1:4566", "embedded"} {
		if got := Endpoint(other); got != other {
			t.Errorf("%s is %s", other, got)
		}
	}
}
