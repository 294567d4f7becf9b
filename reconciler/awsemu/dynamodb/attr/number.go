package attr

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/render/lazyregexp"
)

// Numbers in DynamoDB have up to 38 digits, and range from 1E-130 to 9.99…E+125.
const (
	maxDigits   = 38
	maxExponent = 125
	minExponent = -130
)

// Number is a decimal number: coefficient × 10^exponent. The coefficient does not end in a zero.
type Number struct {
	coefficient *big.Int // nil is 0
	exponent    int
}

var errOverflow = Invalid("Number overflow. Attempting to store a number with magnitude larger than supported range")

var decimal = lazyregexp.New(`^([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?$`)

// ParseNumber parses a number in DynamoDB's format.
func ParseNumber(text string) (Number, error) {
	parts := decimal.FindStringSubmatch(text)
	if parts == nil || parts[2]+parts[3] == "" {
		return Number{}, Invalid("The parameter cannot be converted to a numeric value: %s", text)
	}
	exponent := 0
	if parts[4] != "" {
		var err error
		if exponent, err = strconv.Atoi(parts[4]); err != nil || exponent > 1e6 || exponent < -1e6 {
			exponent = 1e6
			if strings.HasPrefix(parts[4], "-") {
				exponent = -1e6
			}
		}
	}
	exponent -= len(parts[3])
	digits := strings.TrimLeft(parts[2]+parts[3], "0")
	short := strings.TrimRight(digits, "0")
	return bounded(parts[1] == "-", short, exponent+len(digits)-len(short))
}

// bounded returns a number within DynamoDB's limits. digits neither start nor end with a zero.
func bounded(negative bool, digits string, exponent int) (Number, error) {
	if digits == "" {
		return Number{}, nil
	}
	magnitude := exponent + len(digits) - 1
	switch {
	case len(digits) > maxDigits:
		return Number{}, Invalid("Attempting to store more than 38 significant digits in a Number")
	case magnitude > maxExponent:
		return Number{}, errOverflow
	case magnitude < minExponent:
		return Number{}, Invalid("Number underflow. Attempting to store a number with magnitude smaller than supported range")
	}
	n := Number{exponent: exponent}
	n.coefficient, _ = new(big.Int).SetString(digits, 10)
	if negative {
		n.coefficient.Neg(n.coefficient)
	}
	return n, nil
}

// Integer returns a whole number.
func Integer(n int64) Number {
	out, _ := ParseNumber(strconv.FormatInt(n, 10)) // has fewer than 38 digits
	return out
}

// Sign returns -1, 0 or 1.
func (n Number) Sign() int {
	if n.coefficient == nil {
		return 0
	}
	return n.coefficient.Sign()
}

// digits returns the digits of the coefficient, without its sign.
func (n Number) digits() string {
	if n.Sign() == 0 {
		return ""
	}
	return new(big.Int).Abs(n.coefficient).String()
}

// String returns the number without an exponent, like DynamoDB's answers.
func (n Number) String() string {
	digits, sign := n.digits(), ""
	if n.Sign() < 0 {
		sign = "-"
	}
	switch point := len(digits) + n.exponent; {
	case digits == "":
		return "0"
	case n.exponent >= 0:
		return sign + digits + strings.Repeat("0", n.exponent)
	case point > 0:
		return sign + digits[:point] + "." + digits[point:]
	default:
		return sign + "0." + strings.Repeat("0", -point) + digits
	}
}

// scaled returns the coefficient for a smaller exponent.
func (n Number) scaled(exponent int) *big.Int {
	if n.Sign() == 0 {
		return new(big.Int)
	}
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n.exponent-exponent)), nil)
	return power.Mul(power, n.coefficient)
}

// Compare returns -1, 0 or 1.
func (n Number) Compare(m Number) int {
	low := min(n.exponent, m.exponent)
	return n.scaled(low).Cmp(m.scaled(low))
}

// Plus adds numbers. A sum beyond DynamoDB's limits, including its number of digits, is an overflow.
func (n Number) Plus(m Number) (Number, error) {
	low := min(n.exponent, m.exponent)
	sum := new(big.Int).Add(n.scaled(low), m.scaled(low))
	digits := strings.TrimLeft(new(big.Int).Abs(sum).String(), "0")
	short := strings.TrimRight(digits, "0")
	if len(short) > maxDigits {
		return Number{}, errOverflow
	}
	return bounded(sum.Sign() < 0, short, low+len(digits)-len(short))
}

// Negated returns -n.
func (n Number) Negated() Number {
	if n.Sign() == 0 {
		return n
	}
	return Number{new(big.Int).Neg(n.coefficient), n.exponent}
}

// Whole returns the number as an integer, and whether it is one.
func (n Number) Whole() (int64, bool) {
	whole, err := strconv.ParseInt(n.String(), 10, 64)
	return whole, err == nil
}

// size returns the size of the number in bytes: about one byte for two digits.
func (n Number) size() int {
	size := (len(n.digits())+1)/2 + 1
	if n.Sign() < 0 {
		size++
	}
	return size
}

// sortable returns a text with the same order as the numbers.
func (n Number) sortable() string {
	digits := n.digits()
	text := fmt.Sprintf("%03d", len(digits)+n.exponent+200) + digits
	switch n.Sign() {
	case 0:
		return "1"
	case 1:
		return "2" + text
	}
	turned := []byte(text)
	for i, d := range turned {
		turned[i] = '0' + '9' - d
	}
	return "0" + string(turned) + "~"
}

// Invalid returns the error for a violation of DynamoDB's rules.
func Invalid(format string, args ...any) *wire.Error {
	return wire.Fail("ValidationException", format, args...)
}
