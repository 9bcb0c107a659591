package datatype

// users and groups are those of Debian 12's package base-passwd, whose numbers are the same
// on every Debian system. nft(8) reads /etc/passwd and /etc/group when it compiles a rule.
// Here a rule means the same on every machine, so all other users and groups must be given
// as numbers, which is also how nft prints them.
var (
	users = [...]Symbol{
		{"root", 0}, {"daemon", 1}, {"bin", 2}, {"sys", 3}, {"sync", 4}, {"games", 5}, {"man", 6}, {"lp", 7},
		{"mail", 8}, {"news", 9}, {"uucp", 10}, {"proxy", 13}, {"www-data", 33}, {"backup", 34}, {"list", 38},
		{"irc", 39}, {"_apt", 42}, {"nobody", 65534},
	}
	groups = [...]Symbol{
		{"root", 0}, {"daemon", 1}, {"bin", 2}, {"sys", 3}, {"adm", 4}, {"tty", 5}, {"disk", 6}, {"lp", 7},
		{"mail", 8}, {"news", 9}, {"uucp", 10}, {"man", 12}, {"proxy", 13}, {"kmem", 15}, {"dialout", 20}, {"fax", 21},
		{"voice", 22}, {"cdrom", 24}, {"floppy", 25}, {"tape", 26}, {"sudo", 27}, {"audio", 29}, {"dip", 30},
		{"www-data", 33}, {"backup", 34}, {"operator", 37}, {"list", 38}, {"irc", 39}, {"src", 40}, {"shadow", 42},
		{"utmp", 43}, {"video", 44}, {"sasl", 45}, {"plugdev", 46}, {"staff", 50}, {"games", 60}, {"users", 100},
		{"nogroup", 65534},
	}
)
