//! Finds secret bytes in texts.

/// Any spelling of any eight bytes of the secret in a row: hexadecimal in both orders, or a list of decimals.
pub(crate) fn leaks(debug: &str, secret: &[u8]) -> bool {
    let plain: String = debug.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_lowercase();
    secret.windows(8).any(|window| {
        let mut reversed = window.to_vec();
        reversed.reverse();
        let decimals: Vec<String> = window.iter().map(u8::to_string).collect();
        plain.contains(&hex::encode(window))
            || plain.contains(&hex::encode(reversed))
            || plain.contains(&decimals.join(","))
    })
}
