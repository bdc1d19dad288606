//! Options of the emulation from QEMU's command line: `-semihosting-config
//! enable=on,target=native,arg=x,arg=seed=7,...`.

/// Places at which power is lost.
pub(crate) type Cuts = [u32; 8];

/// Options of the emulation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EmulationOptions {
    /// `seed=N`: all randomness follows from this number and from how often the machine was reset. Emulation
    /// only: this machine has no source of randomness. 0 without.
    pub(crate) seed: u64,
    /// `rng=stuck`: the source of randomness fails and repeats one value for ever.
    pub(crate) stuck: bool,
    /// `cut=N`, up to eight times: power is lost in the middle of the Nth word written or page erased
    /// (counted from 1, over resets). 0: never.
    pub(crate) cuts: Cuts,
    /// `hang=N`: the program hangs as the Nth word is about to be written or page to be erased, until the
    /// watchdog resets the machine. 0: never.
    pub(crate) hang: u32,
}

impl EmulationOptions {
    /// Parses the options. Unknown ones end the emulation.
    pub(crate) fn parse(arguments: &str) -> Self {
        let mut options = Self::default();
        let mut cuts = options.cuts.len();
        // The first is the program's name, as usual.
        for argument in arguments.split(' ').skip(1).filter(|argument| !argument.is_empty()) {
            let known = match argument.split_once('=') {
                Some(("seed", number)) => number.parse().map(|seed| options.seed = seed).is_ok(),
                Some(("rng", "stuck")) => {
                    options.stuck = true;
                    true
                }
                Some(("cut", number)) if cuts > 0 => {
                    cuts -= 1;
                    number.parse().map(|at| options.cuts[cuts] = at).is_ok()
                }
                Some(("hang", number)) => number.parse().map(|at| options.hang = at).is_ok(),
                _ => false,
            };
            assert!(known, "not understood: {argument}");
        }
        options
    }
}
